"""Whether a thread of ours hangs in the kernel, and which processes are suspect of making it hang."""

from __future__ import annotations

from opskit.proc.files.mountinfo import parse_mountinfo
from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import ProcFS, optional
from opskit.proc.process_mounts import is_remote

_ASLEEP, _UNINTERRUPTIBLE = "S", "D"
_OF_THREADS = "futex"  # in the name of the kernel's function in which a thread waits for the interpreter


def is_blocked(tid: int) -> bool:
    """Whether a thread of ours sleeps in the kernel; one that waits for a CPU or for another thread of ours does not hang."""
    ours = ProcFS()
    where = (ours.maybe(str, "self", "task", tid, "wchan") or "").strip()
    stat = ours.maybe(parse_stat, "self", "task", tid, "stat")
    if stat is None or stat.state == _UNINTERRUPTIBLE:
        return True
    # It may have run between the two reads: then it has no such place.
    return stat.state == _ASLEEP and where not in ("", "0") and _OF_THREADS not in where


class Suspects:
    """Processes of this machine whose files may hang. Each is looked at once."""

    def __init__(self) -> None:
        self._fs = ProcFS()
        self._remote: dict[bytes, bool] = {}  # by mount namespace

    def has_locked_memory(self, process: str) -> bool:
        """Whether a thread of `/proc/PID` sleeps uninterruptibly, as one does that waits for its memory's lock, or holds it."""
        pid = process.rpartition("/")[2]
        return any(
            self._state(pid, tid) in (_UNINTERRUPTIBLE, None) for tid in optional(self._fs.tids, pid, default=[])
        )

    def _state(self, pid: str, tid: int) -> str | None:
        stat = self._fs.maybe(parse_stat, pid, "task", tid, "stat")
        return None if stat is None else stat.state

    def sees_remote_files(self, process: str) -> bool:
        """Whether a file system of the network, or one that a process serves, is mounted where `/proc/PID` is."""
        pid = process.rpartition("/")[2]
        namespace = optional(self._fs.link, pid, "ns", "mnt")
        if namespace is None:
            return True
        if namespace not in self._remote:
            mounts = self._fs.maybe(parse_mountinfo, pid, "mountinfo")
            self._remote[namespace] = mounts is None or any(map(is_remote, mounts))
        return self._remote[namespace]
