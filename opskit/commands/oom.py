"""`opskit oom`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.analysis.moments import Moment, moment_of
from opskit.analysis.oom import Span, judge
from opskit.collect.oom import Request, collect
from opskit.commands.shared.declare import command
from opskit.commands.shared.options import SHOW, TOP, option
from opskit.errors import UsageError
from opskit.render.views import oom as view

if TYPE_CHECKING:
    from opskit.commands.shared.run import Run


def _moment(text: str) -> Moment:
    if found := moment_of(text):
        return found
    dates = "write a date (2026-01-31T10:05, 2026-01-31T10:05:30+0100)"
    raise click.BadParameter(f"{text!r} is not a time; {dates} or how long ago (90s, 5m, 2h)")


@command("oom", formats=("table", "text", "json", "csv", "markdown"), options=(TOP,))
@click.argument("files", metavar="[FILE... | -]", nargs=-1)
@option("--since", type=_moment, metavar="T", help="Start at this date, or so long before now or the log's end (2h).")
@option("--until", type=_moment, metavar="T", help="End at this date, or so long before now or the log's end.")
@option(
    "-v",
    "--verbose",
    is_flag=True,
    group=SHOW,
    help="Show for each of several kills what was held, and who asked for memory.",
)
def oom(run: Run, files: tuple[str, ...], since: Moment | None, until: Moment | None, verbose: bool) -> int:
    """Show which processes the kernel's OOM killer killed and why: of this machine, or of logs (dmesg, journal, syslog)."""
    span = Span(since, until)
    if span.is_empty:
        raise UsageError("--since is after --until: no time is between them")
    facts = collect(run.host, Request(files))
    result = judge(facts, span)
    shown = view.Shown(run.top, verbose)
    return run.show(lambda: result, lambda found: view.report(run.about(), found, shown), fit_height=run.top is None)
