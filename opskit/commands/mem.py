"""`opskit mem`: who holds the memory of a process or of the machine, and whether it will be killed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from opskit.collect.mem.facts import Request
from opskit.commands.shared.declare import command, refuse
from opskit.commands.shared.options import SHOW, TOP, WATCH, option
from opskit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.analysis.mem.result import Result
    from opskit.collect.mem.facts import Facts
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report

FORMATS = ("table", "text", "json", "markdown", "prometheus", "svg")
READ = "Read"


@command("mem", formats=FORMATS, options=(TOP, WATCH), plotted=False)
@click.argument("process", metavar="[PID|NAME]", required=False)
@option(
    "--files", is_flag=True, help="List tmpfs, shared memory and deleted files that hold memory, and who holds them."
)
@option("--ask", is_flag=True, group=READ, help="Start a JVM's attach listener (a SIGQUIT) to ask it for more.")
@option(
    "--exact", is_flag=True, group=READ,
    help="Read each mapping above 32 GiB too, and each free block of malloc; prints the time first.",
)  # fmt: skip
@option("-v", "--verbose", is_flag=True, group=SHOW, help="Show every row, mapped file, library and memory cgroup.")
def mem(run: Run, process: str | None, files: bool, ask: bool, exact: bool, verbose: bool) -> int:
    """Show who holds the memory of a process, and whether it will be killed. Without an argument: of the host."""
    given: Mapping[str, object] = {"ask": ask, "exact": exact}
    if files or process is None:
        refuse(given, [*given], "goes with a process and without --files: opskit mem PID")
        if run.format == "svg":
            raise UsageError("a picture is drawn of a process: opskit mem PID -o mem.svg")
    pid = None
    if process is not None:
        from opskit.collect.targets import resolve_process

        pid = resolve_process(run.host, process, "mem")
    if files:
        return _files(run, pid, verbose)
    return _host(run, verbose) if pid is None else _process(run, Request(pid, exact, ask), verbose)


def _process(run: Run, request: Request, verbose: bool) -> int:
    from opskit.analysis.mem.judge import judge
    from opskit.analysis.mem.samples import add_sample
    from opskit.collect.mem.collect import Collector, exact_s
    from opskit.render.views.mem import report as view
    from opskit.render.views.mem.sentences import exact_line

    takes_s = exact_s(run.host, request.pid) if request.exact else None
    if takes_s is not None:
        click.echo(f"opskit: {exact_line(request.pid, takes_s)}", err=True)
    is_short = run.out.is_screen and run.top is None and not verbose
    shown = view.Shown(run.format == "text", verbose, run.watching, run.top, request.ask, is_short)
    collector = Collector(run.host, request)
    samples: list[Facts] = []

    def look() -> Result:
        facts = collector.look()
        if run.watching:
            add_sample(samples, facts)
        return judge(facts, samples)

    def show(result: Result) -> Report:
        return _whole(run, view.report(run.about(view.target(result)), result, shown), process=result)

    return run.show(look, show, fit_height=run.top is None and not verbose)


def _host(run: Run, verbose: bool) -> int:
    from opskit.analysis.mem.host import HostResult, judge_host
    from opskit.collect.mem.host import collect_host
    from opskit.render.views.mem import host as view

    top = 0 if verbose and run.top is None else run.top

    def show(result: HostResult) -> Report:
        report = view.report(run.about(), result, top, is_text=run.format == "text")
        return _whole(run, report, host=result)

    return run.show(lambda: judge_host(collect_host(run.host)), show, fit_height=top is None)


def _files(run: Run, pid: int | None, verbose: bool) -> int:
    from opskit.analysis.mem.files import FileResult, judge_files
    from opskit.collect.mem.files import collect_files
    from opskit.render.views.mem import files as view

    top, pids = 0 if verbose and run.top is None else run.top, () if pid is None else (pid,)

    def show(result: FileResult) -> Report:
        about = run.about({"pid": pid} if pid is not None else None)
        return _whole(run, view.report(about, result, top, is_text=run.format == "text"), files=result)

    return run.show(lambda: judge_files(collect_files(run.host, pids)), show, fit_height=top is None)


def _whole(run: Run, report: Report, **answer: Any) -> Report:
    """The report with its JSON object and its metrics, where they are asked for."""
    if run.format not in ("json", "prometheus"):
        return report
    from opskit.render.views.mem.document import Answer, complete

    return complete(report, Answer(**answer))
