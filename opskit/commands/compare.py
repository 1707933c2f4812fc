"""`opskit compare`: why one machine or JVM is slower than another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.commands.shared.declare import command
from opskit.commands.shared.options import TOP, option
from opskit.errors import NotSupported

if TYPE_CHECKING:
    from opskit.commands.shared.run import Run


@command("compare", formats=("table", "text", "json", "markdown", "svg"), options=(TOP,), plotted=False)
@click.argument("bad")
@click.argument("good")
@option("--jvm", metavar="WORD", help="Compare the JVM whose PID, main class or command line has WORD.")
def compare(run: Run, bad: str, good: str, jvm: str | None) -> int:
    """Show what differs between two captures, sos reports or this machine (`live`): symptoms first, then their causes."""
    raise NotSupported(f"compare on {run.host.name}: {bad}, {good}, {jvm}")
