"""`opskit crash`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.analysis.crash.judge import judge
from opskit.collect.crash.collect import collect
from opskit.collect.crash.facts import Request
from opskit.commands.shared.declare import command
from opskit.commands.shared.options import SHOW, TOP, option
from opskit.render.views.crash import report as view

if TYPE_CHECKING:
    from opskit.analysis.crash.result import Result
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report

_VERBOSE = "Show the stack, command line, environment and last events; of several reports each; the places."


@command("crash", formats=("table", "text", "json", "markdown"), options=(TOP,))
@click.argument("names", metavar="[FILE | DIR | -]...", nargs=-1)
@option("-v", "--verbose", is_flag=True, group=SHOW, help=_VERBOSE)
@option("--no-redact", is_flag=True, group=SHOW, help="Show secrets of the command line and environment too.")
def crash(run: Run, names: tuple[str, ...], verbose: bool, no_redact: bool) -> int:
    """Show why a JVM crashed: from its hs_err file or javacore, or from those that are found on this machine."""
    facts = collect(run.host, Request(names))
    shown = view.Shown(run.top, verbose, run.host.now().timestamp(), bool(names))

    def made(result: Result) -> Report:
        report = view.report(run.about(), result, shown)
        if run.format != "json":
            return report
        from opskit.render.views.crash.document import complete

        return complete(report, result)

    return run.show(lambda: judge(facts, redact=not no_redact), made, fit_height=run.top is None)
