"""`opskit mem`: who holds the memory of a process or of the machine, and whether it will be killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.commands.shared.declare import command, refuse
from opskit.commands.shared.options import SHOW, TOP, WATCH, option
from opskit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.analysis.mem.result import Result
    from opskit.collect.mem.facts import Facts, Request
    from opskit.commands.shared.run import Run

FORMATS = ("table", "text", "json", "markdown", "prometheus", "svg")
READ = "Read"


@command("mem", formats=FORMATS, options=(TOP, WATCH), exclusive=[("files", "process")], plotted=False)
@click.argument("process", metavar="[PID|NAME]", required=False)
@option(
    "--files", is_flag=True, help="List tmpfs, shared memory and deleted files that hold memory, and their holders."
)
@option("--ask", is_flag=True, group=READ, help="Start a JVM's attach listener (a SIGQUIT) to ask it for more.")
@option(
    "--exact", is_flag=True, group=READ,
    help="Read each mapping above 32 GiB too, and ask a JVM for what may pause it; says the time first.",
)  # fmt: skip
@option("-v", "--verbose", is_flag=True, group=SHOW, help="Show each mapped file and library, and every memory cgroup.")
def mem(run: Run, process: str | None, files: bool, ask: bool, exact: bool, verbose: bool) -> int:
    """Show who holds the memory of a process, and whether it will be killed. Without an argument: of the host."""
    if process is None:
        given: Mapping[str, object] = {"ask": ask, "exact": exact, "verbose": verbose}
        refuse(given, [*given], "goes with a process: opskit mem PID")
        if run.format == "svg":
            raise UsageError("a picture is drawn of a process: opskit mem PID -o mem.svg")
        return _files(run) if files else _host(run)
    from opskit.collect.mem.facts import Request
    from opskit.collect.targets import resolve_process

    return _process(run, Request(resolve_process(run.host, process, "mem"), exact, ask), verbose)


def _process(run: Run, request: Request, verbose: bool) -> int:
    from opskit.analysis.mem.judge import judge
    from opskit.collect.mem.collect import Collector
    from opskit.render.views.mem import report as view

    shown = view.Shown(run.format == "text", verbose, run.watching, run.top)
    collector = Collector(run.host, request)
    samples: list[Facts] = []

    def look() -> Result:
        facts = collector.look()
        if run.watching:
            samples.append(facts)
        return judge(facts, samples)

    return run.show(
        look, lambda result: view.report(run.about(view.target(result)), result, shown), fit_height=run.top is None
    )


def _host(run: Run) -> int:
    from opskit.analysis.mem.host import judge_host
    from opskit.collect.mem.host import collect_host
    from opskit.render.views.mem import host as view

    return run.show(
        lambda: judge_host(collect_host(run.host)),
        lambda result: view.report(run.about(), result, run.top),
        fit_height=run.top is None,
    )


def _files(run: Run) -> int:
    from opskit.analysis.mem.files import judge_files
    from opskit.collect.mem.files import collect_files
    from opskit.render.views.mem import files as view

    return run.show(
        lambda: judge_files(collect_files(run.host)),
        lambda result: view.report(run.about(), result, run.top),
        fit_height=run.top is None,
    )
