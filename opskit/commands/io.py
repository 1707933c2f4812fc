"""`opskit io`: how a process, or the machine, reads and writes: call sizes, storage, threads in state D, devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.commands.shared.declare import command, refuse
from opskit.commands.shared.options import SHOW, TOP, USERS, WINDOWED, option

if TYPE_CHECKING:
    from opskit.analysis.io.result import Result
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report

FORMATS = ("table", "text", "json", "markdown", "csv", "prometheus")


@command("io", formats=FORMATS, options=(USERS, TOP, WINDOWED))
@click.argument("process", metavar="[PID|NAME]", required=False)
@option(
    "--ask", is_flag=True, help="Ask a JVM for one thread dump: the Java stacks of the threads that read and write."
)
@option("-v", "--verbose", is_flag=True, group=SHOW, help="Show every row, idle devices, calls and positions of files.")
def io(run: Run, process: str | None, ask: bool, verbose: bool) -> int:
    """Show how the threads of a process read and write, and what makes it slow. Without an argument: of the machine."""
    from opskit.analysis.io.judge import judge
    from opskit.collect.io.collect import Collector
    from opskit.collect.io.facts import Request
    from opskit.render.shown import Shown
    from opskit.render.views.io import report as view

    pid = None
    if process is None:
        refuse({"ask": ask}, ["ask"], "goes with a process: opskit io PID")
    else:
        from opskit.collect.targets import resolve_process

        refuse({"user": run.uids or None}, ["user"], "goes without a process: opskit io")
        pid = resolve_process(run.host, process, "io")
    if ask:
        run.host.prove_asking(pid)
    collector = Collector(run.host, Request(pid, run.interval_s, ask, run.uids), watch=run.watching)
    shown = Shown(run.format == "text", run.watching, verbose, run.top, ask, run.redraws)

    def show(result: Result) -> Report:
        report = view.report(run.about(view.target(result)), result, shown)
        if run.format not in ("json", "prometheus", "csv"):
            return report
        from opskit.render.views.io.document import complete

        return complete(report, result)

    return run.show(lambda: judge(collector.look()), show, fit_height=run.top is None and not verbose)
