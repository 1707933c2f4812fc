"""How much of the Java heap is in use now, with garbage, by the collector's own spaces and regions: as GC.heap_info says it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.jvm.memory.heap_ranges import heap_address
from opskit.proc.memory import u64

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.jvm.memory.flags import FlagValue
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_MOST_REGIONS = 4096
_SPACES = ("_eden_space", "_from_space", "_to_space")
_REGION = ("HeapRegion", "G1HeapRegion", "G1ContiguousSpace", "ContiguousSpace", "Space")


class HeapUse:
    """The use of one JVM's heap."""

    def __init__(self, structs: VmStructs, memory: Memory) -> None:
        self._structs, self._memory = structs, memory
        self._heap = heap_address(structs, memory)

    def used_bytes(self, flags: dict[str, FlagValue]) -> int | None:
        """Bytes in use. None: not described for this collector, or torn. Raises NotSupported."""
        if not self._heap:
            return None
        if flags.get("UseG1GC"):
            return self._regions()
        if flags.get("UseSerialGC"):
            return self._spaces(self._serial(), ("ContiguousSpace", "Space"))
        if flags.get("UseParallelGC"):
            return self._spaces(self._parallel(), ("MutableSpace", "ImmutableSpace"))
        if flags.get("UseShenandoahGC"):
            return self._shenandoah()
        return None

    def _regions(self) -> int | None:
        """The regions of G1, up to where each is filled."""
        table = (
            self._heap
            + self._at("_hrm", "G1CollectedHeap")
            + self._at("_regions", "HeapRegionManager", "G1HeapRegionManager")
        )
        base, count = (self._word(table + self._at(field, "G1HeapRegionTable")) for field in ("_base", "_length"))
        if not 0 < count <= _MOST_REGIONS:
            return None
        data = self._memory.read(base, 8 * count)
        regions = (region for (region,) in struct.iter_unpack("<Q", data) if region) if len(data) == 8 * count else ()
        return self._spaces(regions, _REGION) or None

    def _serial(self) -> list[int]:
        young, old = (
            self._word(self._heap + self._at(field, "SerialHeap", "GenCollectedHeap"))
            for field in ("_young_gen", "_old_gen")
        )
        spaces = [self._word(young + self._at(field, "DefNewGeneration")) for field in _SPACES]
        return [*spaces, self._word(old + self._at("_the_space", "TenuredGeneration"))]

    def _parallel(self) -> list[int]:
        young, old = (self._word(self._at(field, "ParallelScavengeHeap")) for field in ("_young_gen", "_old_gen"))
        spaces = [self._word(young + self._at(field, "PSYoungGen")) for field in _SPACES]
        return [*spaces, self._word(old + self._at("_object_space", "PSOldGen"))]

    def _shenandoah(self) -> int | None:
        used = self._structs.find(("ShenandoahHeap", "_used"))
        if used is not None:
            return u64(self._memory, self._heap + used)
        generation = self._word(self._heap + self._at("_global_generation", "ShenandoahHeap"))
        return u64(self._memory, generation + self._at("_used", "ShenandoahGeneration")) if generation else None

    def _spaces(self, spaces: Iterable[int], types: tuple[str, ...]) -> int | None:
        """The sum of what is used of these spaces; None where one makes no sense."""
        bottom_at, top_at = self._at("_bottom", *types), self._at("_top", *types)
        used = 0
        for space in spaces:
            bottom, top = self._word(space + bottom_at), self._word(space + top_at)
            if not 0 < bottom <= top:
                return None
            used += top - bottom
        return used

    def _at(self, field: str, *types: str) -> int:
        return self._structs.at(*((name, field) for name in types))

    def _word(self, address: int) -> int:
        return u64(self._memory, address) or 0
