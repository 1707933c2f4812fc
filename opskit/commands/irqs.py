"""`opskit irqs`: which CPU is saturated by interrupts, and where they, or threads, should be moved to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.commands.shared.declare import command
from opskit.commands.shared.options import SHOW, TOP, WINDOWED, option
from opskit.errors import UsageError

if TYPE_CHECKING:
    from opskit.analysis.irqs.jitter import Result as JitterResult
    from opskit.analysis.irqs.moments import Moment
    from opskit.analysis.irqs.result import Result
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report

_ALL = "all"
_OF_INTERVAL = 0.95  # of a watch: the rest is for starting and ending
FORMATS = ("table", "text", "json", "markdown", "csv", "prometheus", "svg")


@command("irqs", formats=FORMATS, options=(TOP, WINDOWED), needs={"spin": "jitter"}, plotted=False)
@option(
    "--jitter", metavar="[CPU]", is_flag=False, flag_value=_ALL,
    help="Measure how late a thread is woken up on this CPU (0-3,8; default: all), for -i (default 10s).",
)  # fmt: skip
@option(
    "--spin",
    is_flag=True,
    help="With --jitter: read the clock without a pause; sees gaps from 5 us on, uses the CPUs up.",
)
@option("-v", "--verbose", is_flag=True, group=SHOW, help="Show every CPU, interrupt, interface and pinned thread.")
def irqs(run: Run, jitter: str | None, spin: bool, verbose: bool) -> int:
    """Show which CPUs interrupts and softirqs keep busy, what causes them, and the commands that move them."""
    return _irqs(run, verbose) if jitter is None else _jitter(run, jitter, spin, verbose)


def _irqs(run: Run, verbose: bool) -> int:
    from opskit.analysis.irqs.judge import judge
    from opskit.analysis.irqs.moments import moment_of
    from opskit.analysis.watched import keep
    from opskit.collect.irqs.collect import Collector
    from opskit.render.views.irqs import report as view

    run.host.prove_moving("opskit irqs")
    collector = Collector(run.host, run.interval_s, watch=run.watching)
    is_table = run.format == "table"
    shown = view.Shown(run.format == "text", is_table, verbose, run.top, is_table and run.watching)
    moments: list[Moment] = []
    begun = run.host.monotonic()

    def look() -> Result:
        result = judge(collector.look())
        keep(moments, moment_of(result, run.host.monotonic() - begun))
        return result

    def show(result: Result) -> Report:
        report = view.report(run.about(), result, shown, moments)
        if run.format not in ("json", "prometheus", "csv"):
            return report
        from opskit.render.views.irqs.document import complete

        return complete(report, result, moments if run.watching else ())

    return run.show(look, show, fit_height=run.top is None and not verbose)


def _jitter(run: Run, words: str, spin: bool, verbose: bool) -> int:
    from opskit.analysis.irqs.jitter import judge
    from opskit.collect.irqs.jitter import DEFAULT_WINDOW_S, Request, collect, parse_cpus
    from opskit.render.views.irqs import jitter as view

    if run.format == "svg":
        raise UsageError("a picture is drawn of interrupts: leave out --jitter, or write -o jitter.json")
    cpus = None if words == _ALL else parse_cpus(words)
    window_s = _OF_INTERVAL * run.interval_s if run.watching else run.window_s or DEFAULT_WINDOW_S
    ask = Request(cpus, window_s, spin)

    def look() -> JitterResult:
        result = judge(collect(run.host, ask, run.progress))
        if result.facts.interrupted and run.watching:
            raise KeyboardInterrupt  # ends the watch
        return result

    def show(result: JitterResult) -> Report:
        report = view.report(run.about(), result, text=run.format == "text", verbose=verbose, top=run.top)
        if run.format != "json":
            return report
        from opskit.render.views.irqs.document import complete_jitter

        return complete_jitter(report, result)

    return run.show(look, show, fit_height=run.top is None and not verbose)
