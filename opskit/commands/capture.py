"""`opskit capture`: save what every command reads, so that it can be asked later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from opskit.commands.shared.declare import command
from opskit.commands.shared.options import SAMPLING, Duration, option
from opskit.errors import NotSupported

if TYPE_CHECKING:
    from opskit.commands.shared.run import Run

_CONTENT = "Content"


@command("capture", formats=("table", "text", "json", "markdown"))
@click.argument("words", metavar="[PID|NAME]...", nargs=-1)
@option("-c", "--count", type=click.IntRange(min=1), default=2, metavar="COUNT", group=SAMPLING,
        help="Take COUNT samples of all counters (2).")  # fmt: skip
@option("-i", "--interval", type=Duration(), default="1s", group=SAMPLING, help="Time between samples (1s).")
@option("--when", metavar="EXPR", group=SAMPLING,
        help="Wait until EXPR holds: 'cpu>80', 'stopped>20', 'heap>90', 'psi.memory>10', 'finding=CODE'.")  # fmt: skip
@option("--keep", type=click.IntRange(min=1), metavar="N", group=SAMPLING,
        help="With --when: capture each time it holds, and keep the last N.")  # fmt: skip
@option("--ask", is_flag=True, group=_CONTENT, help="Ask JVMs as well, which pauses each for a moment; see --what.")
@option("--what", metavar="threads,histogram,flags,info", group=_CONTENT,
        help="What to ask JVMs for (threads,flags,info; histogram walks the heap).")  # fmt: skip
@option("--no-redact", is_flag=True, group=_CONTENT, help="Keep secrets in command lines, environments, properties.")
def capture(run: Run, **given: Any) -> int:
    """Save what every command reads to a file: later `opskit --from FILE COMMAND` shows what it would have shown."""
    raise NotSupported(f"capture of {run.host.name}: {given['words']}")
