"""What is queued in the pipes."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from opskit.proc.rights import how_to_be_allowed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.fs import ProcFS
    from opskit.proc.pipe_scan import Holder


class Fill(NamedTuple):
    """What is in a pipe, in bytes; `uid` is who made it. `reason`: why all of that is unknown."""

    queued_bytes: int | None = None
    capacity_bytes: int | None = None
    uid: int | None = None
    reason: str | None = None


def read_fills(fs: ProcFS, holders: Iterable[Holder]) -> dict[bytes, Fill]:
    """The fill of every pipe, read through the first holder that permits it, or the reason why none did."""
    from opskit.proc.kernel.syscalls import pipe_fill

    fills: dict[bytes, Fill] = {}
    for holder in holders:
        for key, ends in (holder.ends or {}).items():
            if key in fills and fills[key].reason is None:
                continue
            try:
                of_whom = holder.tid or holder.pid, ends.fd, holder.tid is not None
                queued, capacity, found = fs.calls.ask(pipe_fill, *of_whom)
            except OSError as error:
                fills.setdefault(key, Fill(reason=_reason(fs, error, holder.pid)))
            else:
                if key in (b"pipe:[%d]" % found.inode, b"fifo:%d:%d" % (found.device, found.inode)):
                    fills[key] = Fill(queued, capacity, found.uid)
                else:  # the fd is another pipe by now
                    fills.setdefault(key, Fill(reason=f"{holder.pid} has closed it"))
    return fills


def _reason(fs: ProcFS, error: OSError, pid: int) -> str:
    if isinstance(error, PermissionError):
        return f"no right to look into {pid} (ptrace); {how_to_be_allowed(fs, 'CAP_SYS_PTRACE', pid=pid)}"
    if isinstance(error, ProcessLookupError):
        return f"{pid} vanished"
    if error.errno == errno.ENOSYS:
        return "this kernel has no pidfd_getfd (Linux 5.6)"
    return f"{pid}: {error.strerror}"
