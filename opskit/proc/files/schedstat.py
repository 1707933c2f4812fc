"""CPU time and run queue waits of a thread in ns (Documentation/scheduler/sched-stats.rst, fs/proc/array.c; needs CONFIG_SCHED_INFO).

/proc/PID/task/TID/schedstat: `10385712 62103 31`: ns on a CPU, ns waiting for one, time slices.
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import integer
from opskit.records import NamedTuple


class SchedStat(NamedTuple):
    """Since the thread's start, in ms: on a CPU, and runnable without one (also when its cgroup was throttled); how often it got one."""

    cpu_ms: float
    wait_ms: float | None
    slices: int | None = None


def parse_schedstat(text: str) -> SchedStat:
    """Parse the line; what is missing is None. Raises BadInput."""
    words = text.split(None, 3)
    used_ns = integer(words[0]) if words else None
    if used_ns is None:
        raise BadInput("schedstat", "not `cpu_ns wait_ns slices`", found=text)
    waited_ns = integer(words[1]) if len(words) > 1 else None
    slices = integer(words[2]) if len(words) > 2 else None
    return SchedStat(used_ns / 1e6, None if waited_ns is None else waited_ns / 1e6, slices)
