"""/proc/PID/timens_offsets (time_namespaces(7), Linux 5.6): by how much a time namespace shifts two clocks.

monotonic           0         0
boottime      -864000         0
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import integer, signed
from opskit.records import NamedTuple


class TimeOffsets(NamedTuple):
    """Seconds that are added to CLOCK_MONOTONIC and CLOCK_BOOTTIME. CLOCK_REALTIME has none."""

    monotonic_s: float
    boottime_s: float


def parse_timens_offsets(text: str) -> TimeOffsets:
    """Parse the lines `clock seconds nanoseconds`. Raises BadInput."""
    found = {}
    for line in text[:1000].splitlines():
        words = line.split()
        seconds, rest = (signed(words[1]), integer(words[2])) if len(words) == 3 else (None, None)
        if seconds is None or rest is None:
            raise BadInput("timens_offsets", "not `clock seconds nanoseconds`", found=line)
        found[words[0]] = seconds + rest / 1e9
    if not {"monotonic", "boottime"} <= found.keys():
        raise BadInput("timens_offsets", "no `monotonic` or no `boottime` line")
    return TimeOffsets(found["monotonic"], found["boottime"])
