"""`opskit clock`: whether the clock is right, what keeps it right, and what a process takes for the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.commands.shared.declare import command
from opskit.commands.shared.options import TOP, WATCH, option

if TYPE_CHECKING:
    from opskit.actions.time_daemons import DaemonReader
    from opskit.analysis.clock.result import Result
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report


@command("clock", formats=("table", "text", "json", "markdown", "prometheus"), options=(TOP, WATCH))
@click.argument("process", metavar="[PID|NAME]", required=False)
@option("--server", metavar="HOST[:PORT]", help="Ask this time server (SNTP) how far the clock is off.")
def clock(run: Run, process: str | None, server: str | None) -> int:
    """Show whether the clock is synchronised, set or slow, and what a process takes for the time; with -w see it being set."""
    from opskit.analysis.clock.judge import judge
    from opskit.collect.clock.collect import Collector
    from opskit.collect.clock.facts import Request
    from opskit.render.views.clock import report as view

    asked = None
    if server is not None:
        from opskit.collect.clock.server import parse_server

        asked = parse_server(server)
    pid = None
    if process is not None:
        from opskit.collect.targets import resolve_process

        pid = resolve_process(run.host, process, "clock")
    collector = Collector(run.host, Request(pid, asked, run.interval_s), watch=run.watching)
    run.interval_s = 0.0  # a look waits itself, for its turn or for a step
    reader: DaemonReader | None = None

    def look() -> Result:
        nonlocal reader
        facts = collector.look()
        if facts.daemons and reader is None:
            from opskit.actions.time_daemons import DaemonReader

            reader = DaemonReader(run.host)
        return judge(facts, reader.ask(facts.daemons, facts.steps_total) if reader else ())

    about = {"pid": pid, "server": server}

    def show(result: Result) -> Report:
        report = view.report(run.about(about), result, run.top, text=run.format == "text")
        if run.format not in ("json", "prometheus"):
            return report
        from opskit.render.views.clock.document import complete

        return complete(report, result)

    return run.show(look, show, fit_height=run.top is None)
