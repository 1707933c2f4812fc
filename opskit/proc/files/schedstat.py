"""CPU time of a thread in ns (Documentation/scheduler/sched-stats.rst, fs/proc/array.c; needs CONFIG_SCHED_INFO).

/proc/PID/task/TID/schedstat: `10385712 62103 31`: ns on a CPU, ns waiting for one, time slices.
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import integer


def parse_schedstat(text: str) -> float:
    """CPU time in ms. Raises BadInput."""
    words = text.split(None, 1)
    used_ns = integer(words[0]) if words else None
    if used_ns is None:
        raise BadInput("schedstat", "not `cpu_ns wait_ns slices`", found=text)
    return used_ns / 1e6
