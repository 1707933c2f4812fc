"""Which process is looked at: the one with a PID, or opskit itself for what would be started from this shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.collect.limits.facts import ENDED, Request
from opskit.errors import NoSuchProcess, NotSupported, UsageError
from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import optional
from opskit.quantities import integer

if TYPE_CHECKING:
    from opskit.host import Host


def request_for(host: Host, pid: int | None, *, uses: bool) -> Request:
    """A Request for a living process. Raises UsageError, NoSuchProcess, and NotSupported for kernel threads."""
    if pid is None:
        ours = optional(host.fs.link, "self") if host.fs.is_live else None  # a copy's is the process that copied it
        own = None if ours is None else integer(ours)
        if own is None:
            raise UsageError(f"{host.fs.proc} has no process of ours: name a PID")
        return Request(host.process(own), uses, is_opskit=True)
    if not host.fs.exists(pid):
        raise NoSuchProcess(pid, "it may have ended; ps -e lists what runs")
    stat = host.fs.maybe(parse_stat, pid, "stat", strict=True)
    if stat is not None and stat.is_kernel_thread:
        raise NotSupported(f"{pid} ({stat.comm}) is a kernel thread: these limits do not apply to it")
    if stat is not None and stat.state in ENDED:
        others = [tid for tid in optional(host.fs.tids, pid, default=[]) if tid != pid]
        if others:
            raise NotSupported(
                f"the first thread of {pid} ({stat.comm}) has ended and {len(others)} others run on; name one of them: "
                + shell.command("opskit", "limits", others[0])
            )
        raise NoSuchProcess(pid, f"it has ended; its parent {stat.ppid} has not waited for it (a zombie)")
    return Request(host.process(pid), uses)
