"""`opskit jmap-diff`."""

from __future__ import annotations

import gc
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from opskit.analysis.jmap_diff.judge import judge
from opskit.analysis.jmap_diff.names import Choice
from opskit.collect.jmap_diff import collect
from opskit.collect.targets import WhichProcess, is_file, is_pid, resolve_jvm
from opskit.commands.shared.declare import command
from opskit.commands.shared.options import SAMPLING, SHOW, TOP, WATCH, Duration, Regex, Size, option
from opskit.errors import NotPermitted, UsageError
from opskit.escape import printable
from opskit.proc.user_files import STDIN
from opskit.render.views import jmap_diff as view

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.collect.histograms import Collector
    from opskit.collect.jmap_diff import Facts
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report

_BEFORE_A_COLLECTION = 5_000_000  # objects: a collection of garbage would only walk through all rows, which are kept
_DEFAULT_INTERVAL_S, _DEFAULT_COUNT = 30.0, 2
_ASK_ABOVE_S = 1.0


_sampling, _show = partial(option, group=SAMPLING), partial(option, group=SHOW)


@command("jmap-diff", formats=("table", "text", "json", "csv", "markdown", "svg", "png"), options=(WATCH[:1], TOP))
@click.argument("words", metavar="BEFORE AFTER [MORE]... | [PID|NAME]", nargs=-1)
@_sampling("-i", "--interval", "interval_s", type=Duration(), help="Time between histograms (30 s).")
@_sampling("-c", "--count", "histograms", type=click.IntRange(min=2), metavar="COUNT",
           help="Take COUNT histograms (2; with -w until Ctrl-C).")  # fmt: skip
@_sampling("--live", is_flag=True, help="Count reachable objects only, after a full GC for each histogram.")
@_sampling("--yes", is_flag=True, help="Do not ask before histograms that stop the JVM for more than 1 s each.")
@_sampling("--timeout", type=Duration(),
           help="Wait at most this long for a histogram (30 s, or 10 times the estimate).")  # fmt: skip
@_sampling("--save", metavar="DIR", help="Keep each histogram's raw text in DIR.")
@_show("--by", type=click.Choice(["class", "package", "module"]), default="class", show_default=True,
       help="Sum by class, package or module.")  # fmt: skip
@_show("--sort", type=click.Choice(["bytes", "instances", "growth", "name"]), default="bytes", show_default=True,
       help="Sort by the difference in bytes or instances, by relative growth, or by name.")  # fmt: skip
@_show("--min-bytes", type=Size(), default="0", help="Leave out smaller differences.")
@_show("--include", type=Regex(), metavar="RE", help="Show only classes whose name matches RE.")
@_show("--exclude", type=Regex(), metavar="RE", help="Leave out classes whose name matches RE.")
@_show("--no-vm", is_flag=True, help="Leave out the VM's own <...> rows (JDK 5 to 7).")
@_show("--no-fold", is_flag=True, help="Do not merge lambdas, hidden classes, proxies and accessors.")
def jmap_diff(run: Run, words: tuple[str, ...], **given: Any) -> int:
    """Compare class histograms of saved files or of a running JVM: which classes grew, and which keep growing."""
    choice = Choice(given["by"], not given["no_fold"], not given["no_vm"], given["include"], given["exclude"])

    def shown(facts: Facts) -> Report:
        jvm = facts.jvm
        target = jvm and {"pid": jvm.pid, "main": jvm.main, "jdk": jvm.jdk, "unit": jvm.unit}
        return view.report(run.about(target), judge(facts, choice, given["sort"], given["min_bytes"]), run.top)

    files = _files(words)
    if files:
        _refuse_sampling({"watch": run.watching, **given})
        gc.set_threshold(_BEFORE_A_COLLECTION)
        return run.show(lambda: collect(files), shown, fit_height=run.top is None)
    collector = _collector(run, words, given)
    if run.watching:
        return run.show(collector.look, shown, fit_height=run.top is None)
    facts = collector.collect(run.progress)
    if facts.error or facts.interrupted:
        click.echo(printable(f"opskit: {facts.error or 'interrupted'}"), err=True)
    code = 2
    if len(facts.samples) > 1:
        code = run.show(lambda: facts, shown, fit_height=run.top is None)
    else:
        kept = f"; it is in {facts.saved[0]}" if facts.saved else ""
        click.echo(printable(f"opskit: only one histogram was taken, and one shows no growth{kept}"), err=True)
    if facts.interrupted:
        return 130
    return 2 if facts.error is not None and not facts.has_ended else code


def _collector(run: Run, words: Sequence[str], given: Mapping[str, Any]) -> Collector:
    """The collector for a JVM, after its cost was printed and agreed to. Raises NotPermitted after a no."""
    from opskit.actions import outfile
    from opskit.collect.histograms import Collector, Request
    from opskit.commands.shared.confirm import agreed

    run.interval_s = given["interval_s"] or _DEFAULT_INTERVAL_S
    run.count = given["histograms"] or (None if run.watching or run.host.is_recorded else _DEFAULT_COUNT)
    pid = _pid(run, words)
    if run.watching:
        from opskit.collect.replayed import refuse_watch

        refuse_watch(run.host, pid, "histogram")
    directory = given["save"]

    def save(name: str, data: bytes) -> str:
        path = os.path.join(directory, name)
        outfile.write_file(path, data)
        return path

    ask = Request(pid, run.interval_s, run.count, given["live"], given["timeout"])
    collector = Collector(run.host, ask, None if directory is None else save)
    click.echo(printable(collector.cost), err=True)
    times = "until Ctrl-C" if run.count is None else f"{run.count} times"
    if collector.pause_s > _ASK_ABOVE_S and not agreed(given["yes"], f"Stop it {times}?"):
        raise NotPermitted(f"{collector.cost}, {times}. Nothing was sent; add --yes")
    if directory is not None:
        outfile.make_directory(directory)
    return collector


def _refuse_sampling(given: Mapping[str, Any]) -> None:
    for parameter in click.get_current_context().command.params:
        if getattr(parameter, "group", None) == SAMPLING and given[str(parameter.name)]:
            raise UsageError(f"{'/'.join(parameter.opts)} goes with a PID, not with files")


def _pid(run: Run, words: Sequence[str]) -> int:
    if words:
        return resolve_jvm(run.host, words[0], or_file=True)
    try:
        return resolve_jvm(run.host, None)
    except WhichProcess as unclear:
        raise WhichProcess(f"{unclear}; or two files", unclear.lines) from None


def _files(words: Sequence[str]) -> tuple[str, ...]:
    """The files that are meant; none where a JVM is meant. Raises UsageError for a mixture."""
    if not words or (len(words) == 1 and not is_file(words[0])):
        return ()
    if is_pid(words[0]):
        raise UsageError(f"a PID or files, not both: {words[0]} is a PID (a file of that name is ./{words[0]})")
    for word in words[1:]:
        if is_pid(word) and not os.path.lexists(word):
            raise UsageError(f"a PID or files, not both: {word} is a PID, {words[0]} a file")
    if words.count(STDIN) > 1:
        raise UsageError("- is standard input, and can be read only once")
    return tuple(words)
