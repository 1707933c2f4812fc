"""`opskit profile`: what a process runs on the CPUs. `opskit jpmp --on-cpu` for ten seconds, of any process."""

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

_DEFAULT_S = 10.0


@command(
    "profile", formats=("table", "text", "markdown", "folded", "json", *PICTURES), options=(OPTIONS, TOP), plotted=False,
    exclusive=EXCLUSIVE, needs=NEEDS, unsuffixed="svg",
)  # fmt: skip
@click.argument("words", metavar="[PID [SAMPLES] [INTERVAL] | FILE...]", nargs=-1)
def profile(run: Run, words: tuple[str, ...], **given: Any) -> int:
    """Profile what a process runs on the CPUs, for 10 s: a JVM, or native code. -o x.svg draws a flame graph."""
    return profile_threads(run, words, given, default_s=_DEFAULT_S)
