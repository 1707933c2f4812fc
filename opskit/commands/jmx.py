"""`opskit jmx`: the attributes of MBeans, read from outside, by a Jolokia, or by an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit import shell
from opskit.commands.shared.declare import command, refuse
from opskit.commands.shared.options import SHOW, TOP, WINDOWED, option
from opskit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.analysis.jmx.result import Result
    from opskit.collect.jmx.facts import Facts, Request
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report

FORMATS = ("table", "text", "json", "markdown", "csv", "prometheus")
READ, _AUTO = "Read", "auto"
_JOLOKIA = "Read by this Jolokia, MBeans of the application too; auto: the one that runs in the JVM."
_AGENT = "Load opskit's agent to read any MBean; it stays in the JVM until that ends."


@command("jmx", formats=FORMATS, options=(TOP, WINDOWED), exclusive=[("jolokia", "agent")], needs={"yes": "agent"})
@click.argument("words", metavar="[PID|NAME] [PATTERN...]", nargs=-1)
@option("--ask", is_flag=True, group=READ, help="Start the JVM's attach listener (a SIGQUIT) to ask it for more.")
@option("--jolokia", metavar="URL|auto", group=READ, help=_JOLOKIA)
@option("--agent", is_flag=True, group=READ, help=_AGENT)
@option("--yes", is_flag=True, group=READ, help="Load it without a question.")
@option("-v", "--verbose", is_flag=True, group=SHOW, help="Show every attribute.")
def jmx(run: Run, words: tuple[str, ...], ask: bool, jolokia: str | None, agent: bool, yes: bool, verbose: bool) -> int:
    """Show what JMX says of a JVM, without a port or an agent. PATTERN: 'java.lang:type=Memory', '*:type=MemoryPool,*'."""
    from opskit.analysis.jmx.judge import judge
    from opskit.collect.jmx.facts import Request
    from opskit.render.shown import Shown
    from opskit.render.views.jmx import report as view

    targets, patterns = sorted_words(words)
    if jolokia == "":
        raise UsageError("--jolokia: no URL; write http://HOST:PORT/jolokia, or auto")
    if jolokia not in (None, _AUTO):
        refuse({"ask": ask}, ["ask"], "goes with a JVM, and not with --jolokia URL")
    pid = None
    if targets or agent or jolokia in (None, _AUTO):
        from opskit.collect.targets import resolve_jvm

        pid = resolve_jvm(run.host, targets[0] if targets else None)
    if ask:
        run.host.prove_asking(pid)
    if agent or jolokia == _AUTO:
        run.host.prove_own(pid)
    if run.window_s is not None:
        refuse({"agent": agent, "jolokia": jolokia}, ["agent", "jolokia"], "without -w has no interval: add -w")
        run.host.prove_moving("-i/--interval")
    request = Request(pid, patterns, ask, "" if jolokia == _AUTO else jolokia, agent, run.window_s)
    whole = run.format in ("json", "prometheus", "csv")
    shown = Shown(run.format == "text", run.watching, verbose or whole, run.top, ask, run.redraws)
    read = _reader(run, request, yes)
    earlier: list[Result] = []

    def look() -> Result:
        result = judge(read(), patterns, earlier[0] if earlier else None)
        earlier[:] = [result]
        return result

    def show(result: Result) -> Report:
        report = view.report(run.about(view.target(result)), result, shown, patterns, is_here=run.host.is_own)
        if not whole:
            return report
        from opskit.render.views.jmx.document import complete

        return complete(report, result)

    return run.show(look, show, fit_height=run.top is None and not verbose and not patterns)


def _reader(run: Run, request: Request, yes: bool) -> Callable[[], Facts]:
    """What reads the MBeans: the JVM's files and memory, a Jolokia, or the agent, once its loading is agreed to."""
    if request.jolokia is None and not request.agent:
        from opskit.collect.jmx.collect import Collector

        return Collector(run.host, request).look
    from opskit.collect.jmx.facts import Facts

    main = None
    if request.pid is not None:
        from opskit.jvm.discover import find_jvm

        main = find_jvm(run.host.fs, request.pid, run.host.clock_ticks).main
    if request.pid is None or not request.agent:
        from opskit.collect.jmx.jolokia import read_jolokia

        def ask_jolokia() -> Facts:
            found = read_jolokia(run.host, request)
            at_s = run.host.now().timestamp()  # the values come last
            names: dict[str, list[str]] = {name: [] for name in found.names}
            return Facts(
                request.pid, main, None, found.beans, found.missing, at_s=at_s, names=names, jolokia_url=found.url
            )

        return ask_jolokia
    from opskit.actions.load_agent import Agent
    from opskit.commands.shared.confirm import agreed

    agent = Agent(run.host, request.pid, request.patterns)
    if not agreed(yes, agent.question):
        do_it = shell.command("opskit", "jmx", request.pid, "--agent", "--yes", *shell.operands(*request.patterns))
        raise UsageError(f"nothing was loaded: {'; '.join(agent.stays)}; add --yes to load it: {do_it}")

    if yes:
        click.echo(f"opskit: {'; '.join(agent.stays)}", err=True)

    def ask_agent() -> Facts:
        found = agent.read()
        at_s = run.host.now().timestamp()  # a first load takes a second, and then the values are read
        return Facts(request.pid, main, None, found.beans, found.missing, found.left_behind, at_s)

    return ask_agent


def sorted_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The targets, at most one, and the patterns: words with `:` or `*`. Raises UsageError."""
    patterns = [word for word in words if ":" in word or "*" in word]
    targets = [word for word in words if word not in patterns]
    for word in patterns:
        if word.startswith(("http://", "https://")):
            from opskit.redact import redact_text

            shown = redact_text(word)
            raise UsageError(f"{shown!r} is no pattern of MBeans; give the URL of a Jolokia as --jolokia URL")
    if len(targets) > 1:
        rule = "give one JVM; an attribute is a part of its pattern: 'java.lang:type=Memory HeapMemoryUsage'"
        raise UsageError(f"jmx: two targets, {targets[0]!r} and {targets[1]!r}; {rule}")
    return targets, patterns
