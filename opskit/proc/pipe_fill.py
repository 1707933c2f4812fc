"""What is queued in the pipes, and which threads sleep in write() on them.

/proc/PID/task/TID/syscall (Documentation: proc_pid_syscall(5)) is `running`, or the number and the arguments of the
system call that the thread sleeps in:

    1 0x4 0x7f3c2c0008b0 0x10000 0x0 0x0 0x0 0x7ffd1c3c8a88 0x7f3c3a1f2a90
"""

from __future__ import annotations

import errno
import platform
from typing import TYPE_CHECKING

from opskit.proc.files.status import parse_status
from opskit.proc.fs import ProcFS, optional
from opskit.proc.rights import how_to_be_allowed
from opskit.quantities import hexadecimal, integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opskit.proc.pipe_scan import Holder

# System call -> which of its arguments is the fd that is written to: write, writev, vmsplice, sendfile, splice.
_GENERIC: dict[int | None, int] = {64: 0, 66: 0, 75: 0, 71: 0, 76: 2}
_WRITES: dict[str, dict[int | None, int]] = {"x86_64": {1: 0, 20: 0, 278: 0, 40: 0, 275: 2}}


class Fill(NamedTuple):
    """What is in a pipe, in bytes; `uid` is who made it. With `reason` nothing else is known."""

    queued_bytes: int | None = None
    capacity_bytes: int | None = None
    uid: int | None = None
    reason: str | None = None


class Blocked(NamedTuple):
    """A thread that sleeps in write() on the pipe `key`."""

    pid: int
    tid: int
    key: bytes


def read_fills(holders: Iterable[Holder], pipe_fill: Callable[..., tuple[int, int, int]]) -> dict[bytes, Fill]:
    """The fill of every pipe, read through the first holder that permits it, or the reason why none did."""
    fills: dict[bytes, Fill] = {}
    for holder in holders:
        for key, ends in (holder.ends or {}).items():
            if key in fills and fills[key].reason is None:
                continue
            try:
                queued, capacity, uid = pipe_fill(holder.tid or holder.pid, ends.fd, thread=holder.tid is not None)
            except OSError as error:
                fills.setdefault(key, Fill(reason=_reason(error, holder.pid)))
            else:
                fills[key] = Fill(queued, capacity, uid)
    return fills


def _reason(error: OSError, pid: int) -> str:
    if isinstance(error, PermissionError):
        return f"no right to look into {pid} (ptrace); {how_to_be_allowed(ProcFS(), 'CAP_SYS_PTRACE', pid=pid)}"
    if isinstance(error, ProcessLookupError):
        return f"{pid} vanished"
    if error.errno == errno.ENOSYS:
        return "this kernel has no pidfd_getfd (Linux 5.6)"
    return f"{pid}: {error.strerror}"


def blocked_writers(fs: ProcFS, holders: Iterable[Holder], fills: Mapping[bytes, Fill]) -> list[Blocked]:
    """The threads that sleep in a write to a pipe that holds data. Needs ptrace rights; nothing is found without."""
    found = []
    for holder in holders:
        ends = holder.ends or {}
        if not any(end.write_fds and fills[key].queued_bytes for key, end in ends.items() if key in fills):
            continue
        for tid in [holder.tid] if holder.tid else optional(fs.tids, holder.pid, default=[]):
            key = _written_pipe(fs, holder.pid, tid)
            if key in ends:
                found.append(Blocked(holder.pid, tid, key))
    return found


def _written_pipe(fs: ProcFS, pid: int, tid: int) -> bytes:
    fd = fs.maybe(parse_written_fd, pid, "task", tid, "syscall")
    return b"" if fd is None else optional(fs.link, pid, "task", tid, "fd", fd, default=b"")


def parse_written_fd(text: str, machine: str = platform.machine()) -> int | None:
    """The fd that a write, writev, vmsplice, sendfile or splice is sleeping on; None for anything else."""
    words = text.split()
    if len(words) < 4:
        return None
    argument = _WRITES.get(machine, _GENERIC).get(integer(words[0]))
    return None if argument is None else hexadecimal(words[1 + argument])


def times_slept(fs: ProcFS, threads: Iterable[Blocked]) -> dict[Blocked, int]:
    """How often each living thread has gone to sleep: a writer does again when a reader has drained its full pipe."""
    counts = {}
    for thread in threads:
        status = fs.maybe(parse_status, thread.pid, "task", thread.tid, "status")
        times = integer(status.fields.get("voluntary_ctxt_switches", "")) if status else None
        if times is not None:
            counts[thread] = times
    return counts
