"""What a JVM's hsperfdata counters say of its young and old generation: the base of allocation and promotion rates.

The TLAB counters are of the last cycle between two collections, in heap words (threadLocalAllocBuffer.cpp). Objects that are too large for
a TLAB are not among them. G1's old generation includes humongous objects. ZGC and Shenandoah have no counters of this kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.jvm.perfdata.counters import GC_COUNTERS, collector
from opskit.jvm.perfdata.stop_clock import JDK, jdk_of
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.jvm.perfdata.hsperfdata import PerfData

_GENERATIONAL = ("Serial", "Parallel", "CMS", "G1")
_WORD_BYTES = 8
_UNSAMPLED_FROM = 25


_SPACE = "sun.gc.generation.0.space"
_SIZES = (
    "sun.gc.collector.0.invocations", f"{_SPACE}.0.capacity", f"{_SPACE}.0.used", f"{_SPACE}.1.used", f"{_SPACE}.2.used",
    "sun.gc.generation.1.space.0.used", "sun.gc.generation.1.maxCapacity",
)  # fmt: skip
_FILLED, _PROMOTED = "sun.gc.tlab.alloc", "sun.gc.policy.avgPromotedAvg"
# What generations() reads.
GENERATION_COUNTERS = frozenset(name.encode() for name in (*GC_COUNTERS, *_SIZES, _FILLED, _PROMOTED, JDK))


class Generations(NamedTuple):
    """Bytes, and collections since the JVM's start. `cycles`: pauses of concurrent collections of the old generation, two each.

    `eden_filled_bytes`: allocated in TLABs in the cycle before the last collection, None without TLABs. `promoted_bytes`: on average
    by a young collection (Parallel). `survivors_bytes`: held by the survivor spaces. `is_eden_current`: whether eden's use is written
    between collections, too (G1, and the others up to JDK 24).
    """

    collector: str
    young: int
    full: int
    cycles: int
    eden_bytes: int
    eden_used_bytes: int
    survivors_bytes: int
    old_used_bytes: int
    old_max_bytes: int
    eden_filled_bytes: int | None = None
    promoted_bytes: int | None = None
    is_eden_current: bool = True

    @property
    def old_pauses(self) -> int:
        """Pauses that collected the old generation, or a part of it."""
        return self.full + self.cycles

    @property
    def old(self) -> int:
        """Collections of the old generation."""
        return self.full + self.cycles // 2


def generations(perf: PerfData) -> Generations | None:
    """The generations; None for a collector without these counters, or with a negative one, as only a damaged file has it."""
    name = collector(perf)
    if name not in _GENERATIONAL:
        return None
    numbers = [*map(perf.number, _SIZES)]
    known = [number for number in numbers if number is not None and number >= 0]
    if len(known) < len(numbers):
        return None
    collections, eden, used, first, second, old, old_max = known
    # CMS is collector 1 and counts two pauses a cycle; its full collections are among them.
    full, cycles = (max(perf.number(f"sun.gc.collector.{number}.invocations") or 0, 0) for number in (1, 2))
    filled, promoted = perf.number(_FILLED), perf.number(_PROMOTED)
    return Generations(
        name,
        collections,
        0 if name == "CMS" else full,
        full if name == "CMS" else cycles,
        eden,
        used,
        first + second,
        old,
        old_max,
        None if filled is None or filled <= 0 else filled * _WORD_BYTES,
        None if promoted is None or promoted < 0 else promoted,
        name == "G1" or (jdk_of(perf) or 0) < _UNSAMPLED_FROM,
    )
