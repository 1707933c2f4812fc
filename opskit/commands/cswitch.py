"""`opskit cswitch`: whether threads get the CPU when they want it, and what takes it from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.commands.shared.declare import command, refuse
from opskit.commands.shared.options import SHOW, TOP, USERS, WINDOWED, option
from opskit.errors import UsageError

if TYPE_CHECKING:
    from opskit.analysis.cswitch.bench import Result as BenchResult
    from opskit.analysis.cswitch.moments import Moment
    from opskit.analysis.cswitch.result import Result
    from opskit.collect.cswitch.facts import Facts
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report

_EXCLUSIVE = [("bench", other) for other in ("process", "ask", "user", "top", "watch", "interval", "verbose")]
_MOST_SAMPLES = 10  # looks of a watch in half of which a warning holds
FORMATS = ("table", "text", "json", "csv", "markdown", "prometheus")


@command(
    "cswitch",
    formats=FORMATS,
    options=(USERS, TOP, WINDOWED),
    needs={"pin": "bench", "working_sets": "bench"},
    exclusive=_EXCLUSIVE,
)
@click.argument("process", metavar="[PID|NAME]", required=False)
@option("--ask", is_flag=True, help="Take one thread dump of a JVM: the Java names of its threads, in full.")
@option("--bench", is_flag=True, help="Measure what a system call and a process switch cost on this machine.")
@option(
    "--pin", type=click.Choice(["one", "two"]),
    help="With --bench: on one CPU, or on two CPUs, only; default: both, and without pinning.",
)  # fmt: skip
@option(
    "--ws", "working_sets", metavar="SIZES",
    help="With --bench: also with processes that overwrite so much memory each (64K,1M,16M).",
)  # fmt: skip
@option("-v", "--verbose", is_flag=True, group=SHOW, help="Show every row, what each CPU did, and the CPU quotas.")
def cswitch(
    run: Run, process: str | None, ask: bool, bench: bool, pin: str | None, working_sets: str | None, verbose: bool
) -> int:
    """Show which threads of a process wait for a CPU, and why. Without an argument: which processes."""
    if bench:
        return _bench(run, pin, working_sets)
    if process is None:
        refuse({"ask": ask}, ["ask"], "goes with a process: opskit cswitch PID")
    elif run.uids:
        raise UsageError("-u/--user chooses among the processes of the machine: leave out the PID or -u")
    pid = None
    if process is not None:
        from opskit.collect.targets import resolve_process

        pid = resolve_process(run.host, process, "cswitch")
    if ask:
        run.host.prove_asking(pid)
    run.host.prove_moving("cswitch")
    return _waits(run, pid, ask, verbose)


def _bench(run: Run, pin: str | None, working_sets: str | None) -> int:
    from opskit.analysis.cswitch.bench import judge
    from opskit.collect.cswitch.bench import Request, collect, parse_working_sets
    from opskit.commands.shared.progress import Progress
    from opskit.render.views.cswitch import bench as view

    ask = Request(pin, () if working_sets is None else parse_working_sets(working_sets))

    def look() -> BenchResult:
        with Progress(run.host) as progress:
            return judge(collect(run.host, ask, progress.expect))

    def show(result: BenchResult) -> Report:
        report = view.report(run.about(), result, text=run.format == "text")
        if run.format != "json":
            return report
        from opskit.render.views.cswitch.document import complete_bench

        return complete_bench(report, result)

    return run.show(look, show)


def _waits(run: Run, pid: int | None, ask: bool, verbose: bool) -> int:
    from opskit.analysis.cswitch.judge import judge
    from opskit.collect.cswitch.collect import Collector
    from opskit.collect.cswitch.facts import Request
    from opskit.render.shown import Shown
    from opskit.render.views.cswitch import report as view

    shown = Shown(run.format == "text", run.watching, verbose, run.top, ask, run.redraws)
    collector = Collector(run.host, Request(pid, run.interval_s, ask, run.uids), watch=run.watching)
    samples: list[Facts] = []
    moments: list[Moment] = []

    def look() -> Result:
        facts = collector.look()
        samples[:] = [*samples[-_MOST_SAMPLES:], facts]
        return judge(facts, samples)

    def show(result: Result) -> Report:
        report = view.report(run.about(view.target(result)), result, shown)
        if run.format not in ("json", "prometheus", "csv"):
            return report
        from opskit.analysis.cswitch.moments import moment_of
        from opskit.analysis.watched import keep
        from opskit.render.views.cswitch.document import Answer, complete

        if run.watching:
            keep(moments, moment_of(result, moments))
        return complete(report, Answer(result, moments))

    return run.show(look, show, fit_height=run.top is None and not verbose)
