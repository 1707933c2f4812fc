"""The words where file descriptors are closed to us, or not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import NotPermitted
from opskit.proc.rights import as_owner_or_root

if TYPE_CHECKING:
    from opskit.host import Host
    from opskit.proc.process import Process

OUTSIDE = "this is a PID namespace: what processes outside of it have open is not seen"


def refused(host: Host, process: Process) -> NotPermitted:
    """Whose descriptors they are, and who may read them."""
    who = f"{process.pid} ({process.command}, user {process.user or 'unknown'})"
    remedy = as_owner_or_root(host.fs, "CAP_SYS_PTRACE", process.pid, process.uid or 0)
    return NotPermitted(f"cannot read the file descriptors of {who}: permission denied; {remedy}")
