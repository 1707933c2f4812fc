"""What doctor asks of a check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.host import Host


class Look(NamedTuple):
    """One look at a machine.

    `host` keeps what does not change within a run (`fs.kept`); its `sleep` lets the other checks go on meanwhile.
    `pids`: the processes that are asked about; none: the whole machine. `window_s`: for rates; 0 in a copy, which has none.
    `ask`: a JVM may be asked for a thread dump, and programs may be run. `suspects`: with --ask, the JVMs that are worth it.
    `until_s`: when the answer is due, of `host.monotonic`; None: no matter when.
    """

    host: Host
    pids: tuple[int, ...] = ()
    window_s: float = 1.0
    ask: bool = False
    suspects: tuple[int, ...] = ()
    until_s: float | None = None
