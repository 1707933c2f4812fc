"""Whether a thread of ours hangs in the kernel."""

from __future__ import annotations

from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import ProcFS

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
