"""`opskit jpmp`: profile the threads of a JVM, live or from saved dumps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from opskit.commands.shared.declare import command
from opskit.commands.shared.options import TOP
from opskit.commands.shared.profile_options import EXCLUSIVE, NEEDS, OPTIONS
from opskit.commands.shared.profiling import profile_threads
from opskit.render.views.jpmp.report import PICTURES

if TYPE_CHECKING:
    from opskit.commands.shared.run import Run


@command(
    "jpmp", formats=("table", "text", "markdown", "folded", "json", *PICTURES), options=(OPTIONS, TOP), plotted=False,
    exclusive=EXCLUSIVE, needs=NEEDS,
)  # fmt: skip
@click.argument("words", metavar="[PID [SAMPLES=20] [INTERVAL=0.25] | FILE...]", nargs=-1)
def jpmp(run: Run, words: tuple[str, ...], **given: Any) -> int:
    """Profile the threads of a JVM, live or from saved dumps and profiles: stacks, CPU time, locks, flame graphs."""
    return profile_threads(run, words, given)
