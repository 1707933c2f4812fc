"""`opskit jmap-diff`."""

from __future__ import annotations

import gc
import os
import re
from typing import TYPE_CHECKING, Any

import click

from opskit.analysis.jmap_diff.judge import judge
from opskit.analysis.jmap_diff.names import Choice
from opskit.collect.jmap_diff import collect
from opskit.collect.targets import WhichProcess, is_file, is_pid, resolve_jvm
from opskit.commands.shared.options import SAMPLING, SHOW, TOP, WATCH, Duration, Size, option
from opskit.commands.shared.run import command
from opskit.errors import NotPermitted, UsageError
from opskit.escape import printable
from opskit.proc.user_files import STDIN
from opskit.render.views import jmap_diff as view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.histograms import Collector
    from opskit.collect.jmap_diff import Facts
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report

_BEFORE_A_COLLECTION = 5_000_000  # objects: a collection of garbage would only walk through all rows, which are kept
_DEFAULT_INTERVAL_S, _DEFAULT_COUNT = 30.0, 2
_ASK_ABOVE_S = 1.0


class Pattern(click.ParamType):
    """A regular expression, searched in the class names as the JVM writes them."""

    name = "re"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> re.Pattern[str]:
        """The compiled expression."""
        try:
            return re.compile(str(value))
        except (re.error, OverflowError, RecursionError) as error:
            self.fail(f"{value!r} is no regular expression: {error}", param, ctx)


@command(
    "jmap-diff",
    formats=("table", "text", "json", "csv", "markdown", "svg", "png"),
    options=(WATCH[:1], TOP),
    needs={"interval": None, "count": None},
)
@click.argument("words", metavar="BEFORE AFTER [MORE]... | [PID|NAME]", nargs=-1)
@option("-i", "--interval", type=Duration(), metavar="SECONDS", group=SAMPLING, help="Time between histograms (30 s).")
@option(
    "-c", "--count", type=click.IntRange(min=2), metavar="COUNT", group=SAMPLING,
    help="Stop after COUNT histograms (2; with -w at Ctrl-C).",
)
@option("--live", is_flag=True, group=SAMPLING, help="Count reachable objects only, by a full GC each.")
@option("--yes", is_flag=True, group=SAMPLING, help="Go ahead where each histogram stops the JVM for more than 1 s.")
@option(
    "--timeout", type=Duration(), metavar="SECONDS", group=SAMPLING,
    help="Wait at most SECONDS for a histogram (30 s, or 10 times the estimate).",
)
@option("--save", metavar="DIR", group=SAMPLING, help="Keep each histogram's raw text in DIR.")
@option("--by", type=click.Choice(["class", "package", "module"]), default="class", show_default=True, group=SHOW, help="Sum up.")
@option(
    "--sort", type=click.Choice(["bytes", "instances", "growth", "name"]), default="bytes", show_default=True, group=SHOW,
    help="By the difference in bytes or instances, by the growth in proportion, or by name.",
)
@option("--min-bytes", type=Size(), default="0", metavar="SIZE", group=SHOW, help="Leave out smaller differences.")
@option("--include", type=Pattern(), metavar="RE", group=SHOW, help="Only classes whose name has RE in it.")
@option("--exclude", type=Pattern(), metavar="RE", group=SHOW, help="No classes whose name has RE in it.")
@option("--no-vm", is_flag=True, group=SHOW, help="Leave out the VM's own <...> rows (JDK 5 to 7).")
@option("--no-fold", is_flag=True, group=SHOW, help="Keep lambdas, hidden classes, proxies and accessors apart.")
def jmap_diff(
    run: Run, words: tuple[str, ...], live: bool, yes: bool, timeout: float | None, save: str | None,
    by: str, sort: str, min_bytes: int, include: re.Pattern[str] | None, exclude: re.Pattern[str] | None,
    no_vm: bool, no_fold: bool,
) -> int:
    """Compare class histograms: which classes grew, and which keep growing. From saved files, or of a running JVM."""
    choice = Choice(by, not no_fold, not no_vm, include, exclude)

    def shown(facts: Facts) -> Report:
        jvm = facts.jvm
        target = jvm and {"pid": jvm.pid, "main": jvm.main, "jdk": jvm.jdk, "unit": jvm.unit}
        return view.report(run.about(target), judge(facts, choice, sort, min_bytes), run.top)

    fit_height = run.top is None
    files = _files(words)
    if files:
        given = {
            "-w/--watch": run.watching, "-i/--interval": run.given("interval"), "-c/--count": run.count, "--live": live,
            "--yes": yes, "--timeout": timeout, "--save": save,
        }  # fmt: skip
        for name, value in given.items():
            if value:
                raise UsageError(f"{name} goes with a PID: the histograms of files are there already")
        gc.set_threshold(_BEFORE_A_COLLECTION)
        return run.show(lambda: collect(files), shown, fit_height=fit_height)
    from opskit.collect.histograms import Collector, Request  # noqa: PLC0415  (attaching: only for a JVM)

    count = run.count or (None if run.watching else _DEFAULT_COUNT)
    run.interval_s = run.given("interval") or _DEFAULT_INTERVAL_S
    ask = Request(_pid(run, words), run.interval_s, count, live, timeout)
    collector = Collector(run.host, ask, None if save is None else lambda name, data: _saved(save, name, data))
    _agree(collector, yes)
    if save is not None:
        from opskit.commands.shared.output import make_directory  # noqa: PLC0415

        make_directory(save)
    if run.watching:
        return run.show(collector.look, shown, fit_height=fit_height)
    facts = collector.collect(run.progress)
    if facts.error or facts.interrupted:
        click.echo(printable(f"opskit: {facts.error or 'interrupted'}"), err=True)
    code = 2
    if len(facts.samples) > 1:
        code = run.show(lambda: facts, shown, fit_height=fit_height)
    else:
        kept = f"; it is in {facts.saved[0]}" if facts.saved else ""
        click.echo(printable(f"opskit: only one histogram was taken, and one shows no growth{kept}"), err=True)
    if facts.interrupted:
        return 130
    return 2 if facts.error is not None and not facts.has_ended else code


def _agree(collector: Collector, yes: bool) -> None:
    """Say what it will cost, and ask where that is much. Raises NotPermitted after a no."""
    from opskit.commands.shared.confirm import agreed  # noqa: PLC0415  (only for a JVM)

    click.echo(printable(collector.cost), err=True)
    count = collector.ask.count
    times = "until Ctrl-C" if count is None else f"{count} times"
    if collector.pause_s > _ASK_ABOVE_S and not agreed(yes, f"Stop it {times}?"):
        raise NotPermitted(f"{collector.cost}, {times}. Nothing was sent; add --yes")


def _saved(directory: str, name: str, data: bytes) -> str:
    from opskit.commands.shared.output import write_file  # noqa: PLC0415  (only for --save)

    path = os.path.join(directory, name)
    write_file(path, data)
    return path


def _pid(run: Run, words: Sequence[str]) -> int:
    try:
        return resolve_jvm(run.host, words[0] if words else None)
    except WhichProcess as unclear:
        no_file = f" (and there is no such file: {words[0]})" if words else "; or two files"
        raise WhichProcess(f"{unclear}{no_file}", unclear.lines) from None


def _files(words: Sequence[str]) -> tuple[str, ...]:
    """The files that are meant; none where a JVM is. Raises UsageError."""
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
