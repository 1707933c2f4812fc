"""`opskit doctor`: every check at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.commands.shared.declare import command
from opskit.commands.shared.options import WATCH, Duration, option

if TYPE_CHECKING:
    from opskit.commands.shared.run import Run

FORMATS = ("table", "text", "json", "markdown", "prometheus")


@command("doctor", formats=FORMATS, options=(WATCH,), writes_nothing=True)
@click.argument("targets", metavar="[PID|NAME]...", nargs=-1)
@option("--ask", is_flag=True, help="Take a thread dump of the JVMs that are named, stuck or slow; run programs.")
@option("--deadline", type=Duration(), default="2s", show_default=True, help="Report after this time what is known.")
def doctor(run: Run, targets: tuple[str, ...], ask: bool, deadline: float) -> int:
    """Find what is wrong with a host or its processes: every check at once, causes above their symptoms."""
    from opskit.checks.run import Request, run_checks

    seen = run_checks(run.host, Request(targets, ask=ask, deadline_s=deadline))
    for each in seen.checked:
        click.echo(f"{each.name}: {each.took_s:.3f} s, cpu {each.cpu_s} {each.outcome.looked_at}")
        for finding in each.outcome.findings:
            click.echo(f"   {finding.severity} {finding.code} {finding.summary}")
    for gap in seen.unchecked:
        click.echo(f"not checked: {gap}")
    return 0
