"""`opskit compare`: why one machine or JVM is slower than another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.commands.shared.declare import command
from opskit.commands.shared.options import TOP, option
from opskit.errors import UsageError

if TYPE_CHECKING:
    from opskit.commands.shared.run import Run

_MOST_WORDS = 2


@command("compare", formats=("table", "text", "json", "markdown", "csv", "svg"), options=(TOP,), plotted=False)
@click.argument("bad", metavar="BAD")
@click.argument("good", metavar="GOOD")
@option("--jvm", "words", metavar="WORD", multiple=True,
        help="Compare the JVM whose PID, main class or command line has WORD; twice: of BAD, then of GOOD.")  # fmt: skip
def compare(run: Run, bad: str, good: str, words: tuple[str, ...]) -> int:
    """Show what differs between two captures, sos reports or this machine (`live`): symptoms first, then their causes."""
    from opskit.analysis.compare.judge import judge
    from opskit.collect.compare.sides import collect
    from opskit.render.views import compare as view

    if len(words) > _MOST_WORDS:
        raise UsageError(f"--jvm is given {len(words)} times; give it once, or once for BAD and once for GOOD")
    if bad == good == "-":
        raise UsageError("- is standard input, and can be read only once")
    if run.format == "svg":
        raise UsageError("the captures are drawn where they hold thread dumps: capture with --ask --what threads")
    return run.show(
        lambda: judge(collect(bad, good, run.host, run.progress), words),
        lambda result: view.report(run.about(), result, run.top),
        fit_height=run.top is None,
    )
