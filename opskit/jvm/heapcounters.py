"""The heap by hsperfdata: how full it is, and how large it may become.

Source: HotSpot's generationCounters.cpp and each collector's monitoring support. Serial, Parallel and CMS have two
generations that share the heap; with G1, ZGC and Shenandoah each counter's maximum is the whole heap.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opskit.jvm.hsperfdata import PerfData

_USED = re.compile(r"sun\.gc\.generation\.\d+\.space\.\d+\.used")
_MAXIMUM = re.compile(r"sun\.gc\.generation\.\d+\.maxCapacity")
_SHARED_BY_GENERATIONS = ("Copy", "ParScav", "ParNew", "MSC")  # of sun.gc.policy.name


def heap_used_bytes(perf: PerfData) -> int | None:
    """Bytes in use, garbage included, as of a moment ago; None where the JVM does not count them, or not yet.

    G1 counts the young ones by whole regions, and those for very large objects at the next collection only.
    """
    return sum(_numbers(perf, _USED)) or None


def heap_max_bytes(perf: PerfData) -> int | None:
    """What the heap may grow to (-Xmx); None where the JVM does not say."""
    maxima = _numbers(perf, _MAXIMUM)
    if not any(maxima):
        return None
    two = (perf.text("sun.gc.policy.name") or "").startswith(_SHARED_BY_GENERATIONS)
    return sum(maxima) if two else max(maxima)


def _numbers(perf: PerfData, pattern: re.Pattern[str]) -> list[int]:
    found = (perf.number(name) for name in perf.counters if pattern.fullmatch(name))
    return [number for number in found if number is not None]
