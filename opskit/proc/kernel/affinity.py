"""Where and how a thread of our pid namespace may run (sched(7)). Everybody may ask; a call costs a fifth of reading /proc/TID/status."""

from __future__ import annotations

import os

_LOWEST_NICE = 19
_REAL_TIME = {
    os.SCHED_FIFO: "fifo",
    os.SCHED_RR: "rr",
    6: "deadline",
}  # Python has no name for SCHED_DEADLINE before 3.14


def allowed_cpus(tid: int) -> frozenset[int]:
    """The online CPUs that a thread may use: sched_getaffinity(2). Raises OSError: ESRCH where it has ended."""
    return frozenset(os.sched_getaffinity(tid))


def takes_what_is_left(tid: int) -> bool:
    """Whether a thread is of the class SCHED_IDLE, or has nice 19. Raises OSError: ESRCH where it has ended."""
    return _policy(tid) == os.SCHED_IDLE or os.getpriority(os.PRIO_PROCESS, tid) >= _LOWEST_NICE


def real_time_policy(tid: int) -> str | None:
    """`fifo`, `rr` or `deadline`; None for a thread of another class. Raises OSError: ESRCH where it has ended."""
    return _REAL_TIME.get(_policy(tid))


def _policy(tid: int) -> int:
    return os.sched_getscheduler(tid) & ~os.SCHED_RESET_ON_FORK
