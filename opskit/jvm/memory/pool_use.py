"""What each memory pool of a JVM has in use now, as MemoryPoolMXBean.getUsage() computes it from the collector's own counters.

Sources: gc/g1/g1MonitoringSupport.cpp, gc/serial, gc/parallel/psMemoryPool.hpp, gc/z/zServiceability.cpp, gc/shenandoah,
memory/heap.hpp (CodeHeap), memory/metaspace. A value that this JVM does not describe is left out.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.jvm.memory.code_cache import heap_addresses
from opskit.jvm.memory.heap_ranges import heap_address
from opskit.jvm.memory.memory_service import Usage
from opskit.jvm.memory.zgc_use import ZgcUse
from opskit.proc.memory import u64
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.jvm.memory.flags import FlagValue
    from opskit.jvm.memory.memory_service import Pool
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_USED_CLASS, _USED_OTHER = (
    f"_ZN9metaspace15RunningCounters{name}E" for name in ("19_used_class_counter", "22_used_nonclass_counter")
)
_CONTEXTS = tuple(
    f"_ZN9metaspace16MetaspaceContext{name}E" for name in ("20_class_space_context", "23_nonclass_space_context")
)
_OLD_USED = "_ZN14MetaspaceUtils11_used_wordsE"  # up to JDK 15: of classes, of others
_OLD_LISTS = ("_ZN9Metaspace17_class_space_listE", "_ZN9Metaspace11_space_listE")
USE_VARIABLES = (_USED_CLASS, _USED_OTHER, *_CONTEXTS, _OLD_USED, *_OLD_LISTS)
USE_FLAGS = ("InitialHeapSize", "UseAdaptiveSizePolicy", "MinSurvivorRatio")
_WORD_BYTES = 8
_OLD_COMMITTED_AT = 32  # in a VirtualSpaceList up to JDK 15
_LIST_AT, _USED_AT, _COMMITTED_AT = 8, 24, (40, 48)  # in a MetaspaceContext; in a VirtualSpaceList
_LARGEST_BYTES = 1 << 46
_OWN_FIELDS = range(176, 224, 8)  # of a pool, behind those of its base class
_REGIONS_BEFORE_USED = 24
_PARALLEL_ALIGNMENT = 64 * 1024 * 8


class Part(NamedTuple):
    """Bytes in use and committed, and a limit where it changes."""

    used: int
    committed: int
    max: int | None = None


class PoolUse:
    """The pools of one JVM now. Raises NotSupported where its heap is not described."""

    def __init__(
        self,
        structs: VmStructs,
        memory: Memory,
        variables: Mapping[str, int],
        flags: Mapping[str, FlagValue],
    ) -> None:
        self._structs, self._memory, self._variables, self._flags = structs, memory, variables, flags
        self._heap = heap_address(structs, memory)
        self._zgc = ZgcUse(structs, memory, self._heap)

    def usage(self, pool: Pool) -> Usage | None:
        """Its usage; None: not described for this pool."""
        try:
            part = self._part(pool)
        except NotSupported:
            return None
        if part is None or not 0 <= part.used <= _LARGEST_BYTES or not 0 <= part.committed <= _LARGEST_BYTES:
            return None
        most = pool.max if part.max is None else part.max
        return Usage(pool.init, part.used, part.committed, most if pool.is_available or most < 0 else 0)

    def heap_usage(self, pools: Sequence[Pool], usages_of: Mapping[int, Usage | None]) -> Usage | None:
        """Of the whole heap: HeapMemoryUsage. `usages_of`: of the pools by their addresses."""
        heap = [pool for pool in pools if pool.is_heap]
        if self._flags.get("UseShenandoahGC"):
            return self._shenandoah_heap(heap)
        usages = [usages_of.get(pool.address) for pool in heap]
        known = [each for each in usages if each is not None]
        initial = self._flags.get("InitialHeapSize")
        if len(known) < len(usages) or not known or not isinstance(initial, int):
            return None
        used, committed = sum(each.used for each in known), sum(each.committed for each in known)
        used, committed = self._g1_overall(used, committed)
        if heap[0].name == "ZHeap" and self._structs.find(("XCollectedHeap", "_heap")) is not None:
            initial = heap[0].init  # of JDK 21 to 23
        return Usage(initial, used, committed, self._heap_max(known, committed))

    def non_heap_usage(self, pools: Sequence[Pool], usages_of: Mapping[int, Usage | None]) -> Usage | None:
        """Of all other pools: NonHeapMemoryUsage. The compressed class space is also in Metaspace, as it is there."""
        usages = [usages_of.get(pool.address) for pool in pools if not pool.is_heap]
        known = [each for each in usages if each is not None]
        if len(known) < len(usages) or not known:
            return None

        def total(values: list[int]) -> int:
            return -1 if min(values) < 0 else sum(values)

        return Usage(
            total([each.init for each in known]), sum(each.used for each in known), sum(each.committed for each in known),
            total([each.max for each in known]),
        )  # fmt: skip

    def _part(self, pool: Pool) -> Part | None:
        name = pool.name
        if name.startswith(("CodeHeap", "CodeCache", "Code Cache")):
            return self._code(pool)
        if name == "Metaspace":
            return self._metaspace()
        if name == "Compressed Class Space":
            return self._class_space()
        if name.startswith("G1 "):
            return self._g1(name)
        if name.startswith("PS "):
            return self._parallel(name)
        if name.startswith(("ZHeap", "ZGC ")):
            found = self._zgc.part(name)
            return Part(*found) if found is not None else None
        if name == "Shenandoah":
            return self._shenandoah()
        if name.startswith("Shenandoah "):
            return self._shenandoah_generation(pool)
        if name == "Epsilon Heap":
            return self._epsilon()
        return self._serial(name)

    def _g1(self, name: str) -> Part | None:
        support, at = self._g1_support(), self._g1_at
        stems = {"G1 Eden Space": "eden", "G1 Survivor Space": "survivor", "G1 Old Gen": "old"}
        stem = stems.get(name)
        if stem is None:
            return None
        used, committed = (self._word(support + at(stem, what)) for what in ("used", "committed"))
        return Part(used, committed)

    def _g1_support(self) -> int:
        structs = self._structs
        return self._word(
            self._heap + structs.at(("G1CollectedHeap", "_monitoring_support"), ("G1CollectedHeap", "_g1mm"))
        )

    def _g1_at(self, stem: str, what: str) -> int:
        names = (f"_{stem}_space_{what}", f"_{stem}_gen_{what}", f"_{stem}_{what}")
        return self._structs.at(*(("G1MonitoringSupport", name) for name in names))

    def _g1_overall(self, used: int, committed: int) -> tuple[int, int]:
        """With G1 since JDK 12 the heap's use is counted apart: before the committed bytes of the two generations."""
        old_at = self._structs.find(("G1MonitoringSupport", "_old_gen_committed"))
        if old_at is None or not self._flags.get("UseG1GC"):
            return used, committed
        overall_committed, overall_used = (self._word(self._g1_support() + old_at - before) for before in (24, 16))
        return (overall_used, committed) if overall_committed == committed else (used, committed)

    def _serial(self, name: str) -> Part | None:
        owners = ("SerialHeap", "GenCollectedHeap")
        young, old = (self._word(self._heap + self._at(field, *owners)) for field in ("_young_gen", "_old_gen"))
        if name.endswith("Eden Space"):
            return self._space(self._word(young + self._at("_eden_space", "DefNewGeneration")))
        if name.endswith("Survivor Space"):
            return self._space(self._word(young + self._at("_from_space", "DefNewGeneration")))
        if name == "Tenured Gen":
            return self._space(self._word(old + self._at("_the_space", "TenuredGeneration")))
        return None

    def _parallel(self, name: str) -> Part | None:
        young, old = (self._word(self._at(field, "ParallelScavengeHeap")) for field in ("_young_gen", "_old_gen"))
        if name == "PS Old Gen":
            return self._space(self._word(old + self._at("_object_space", "PSOldGen")), "MutableSpace")
        spaces = [
            self._space(self._word(young + self._at(f"_{space}_space", "PSYoungGen")), "MutableSpace")
            for space in ("eden", "from", "to")
        ]
        eden, source, target = spaces
        if name == "PS Survivor Space":
            return source._replace(max=source.committed)
        largest = self._word(young + self._at("_max_gen_size", "PSYoungGen"))
        return eden._replace(max=largest - source.committed - target.committed)

    def _space(self, space: int, *types: str) -> Part:
        types = (*types, "ContiguousSpace", "Space")
        bottom, end, top = (self._word(space + self._at(field, *types)) for field in ("_bottom", "_end", "_top"))
        return Part(top - bottom, end - bottom)

    def _shenandoah(self) -> Part | None:
        committed = self._word(self._heap + self._at("_committed", "ShenandoahHeap"))
        used_at = self._structs.find(("ShenandoahHeap", "_used"))
        if used_at is not None:
            return Part(self._word(self._heap + used_at), committed)
        used = self._used_of(self._word(self._heap + self._at("_global_generation", "ShenandoahHeap")))
        return Part(used, committed) if used else None  # a JVM has objects: else it counts elsewhere

    def _used_of(self, generation: int) -> int:
        return self._word(generation + self._at("_used", "ShenandoahGeneration"))

    def _shenandoah_generation(self, pool: Pool) -> Part | None:
        """Behind the heap a pool has its generation, which counts its regions three fields before its use."""
        fields = [self._word(pool.address + at) for at in _OWN_FIELDS]
        generation = next((after for each, after in zip(fields, fields[1:]) if each == self._heap), 0)
        if not generation or self._shenandoah() is None:
            return None
        used = self._used_of(generation)
        regions = self._word(generation + self._at("_used", "ShenandoahGeneration") - _REGIONS_BEFORE_USED)
        size = regions * self._word(self._at("RegionSizeBytes", "ShenandoahHeapRegion"))
        return Part(used, size) if used <= size <= pool.max else None

    def _shenandoah_heap(self, heap: Sequence[Pool]) -> Usage | None:
        """Of all generations, where it has them."""
        try:
            part, initial = self._shenandoah(), self._flags.get("InitialHeapSize")
        except NotSupported:
            return None
        if part is None or not isinstance(initial, int) or not heap:
            return None
        return Usage(initial, part.used, part.committed, max(pool.max for pool in heap))

    def _epsilon(self) -> Part:
        used = self._space(self._word(self._heap + self._at("_space", "EpsilonHeap"))).used
        space = self._heap + self._at("_virtual_space", "EpsilonHeap")
        low, high = (self._word(space + self._at(field, "VirtualSpace")) for field in ("_low", "_high"))
        return Part(used, high - low)

    def _code(self, pool: Pool) -> Part | None:
        """A CodeHeap: behind log2 of a segment's size it has the number of the next segment, and its list of free blocks."""
        heaps = frozenset(filter(None, heap_addresses(self._structs, self._memory)))
        heap = next((word for at in _OWN_FIELDS if (word := self._word(pool.address + at)) in heaps), 0)
        if not heap:
            return None
        at = self._at("_log2_segment_size", "CodeHeap")
        data = self._memory.read(heap + at, 40)
        if len(data) < 40:
            return None
        shift, following, first, other, last = struct.unpack("<B7xQQQQ", data)
        # JDK 11: the first free block, the number of free segments. Later the place of the last insertion is between them, if any.
        free = 0 if not first else last if not 0 < other < 1 << 32 else other
        space = heap + self._at("_memory", "CodeHeap")
        low, high = (self._word(space + self._at(field, "VirtualSpace")) for field in ("_low", "_high"))
        if not 3 <= shift <= 16 or not 0 <= free <= following <= (high - low) >> shift:
            return None
        return Part(following - free << shift, high - low)

    def _metaspace(self) -> Part | None:
        parts = self._metaspace_parts()
        return None if None in parts else Part(*(sum(each[number] for each in parts if each) for number in (0, 1)))

    def _class_space(self) -> Part | None:
        found = self._metaspace_parts()[0]
        return None if found is None else Part(*found)

    def _metaspace_parts(self) -> list[tuple[int, int] | None]:
        """Bytes used and committed: of the class space, (0, 0) without one, and of the rest. None: unknown."""
        variables = self._variables
        if _OLD_USED in variables:
            lists = [self._word(variables[name]) if name in variables else 0 for name in _OLD_LISTS]
            used = [self._word(variables[_OLD_USED] + _WORD_BYTES * number) for number in (0, 1)]
            committed = [self._word(each + _OLD_COMMITTED_AT) if each else 0 for each in lists]
            return [(_WORD_BYTES * each, _WORD_BYTES * size) for each, size in zip(used, committed)]
        if _CONTEXTS[1] not in variables:
            return [None, None]
        return [
            self._context(self._word(variables[name]), counter) if name in variables else None
            for name, counter in zip(_CONTEXTS, (_USED_CLASS, _USED_OTHER))
        ]

    def _context(self, context: int, counter: str) -> tuple[int, int] | None:
        if not context:
            return 0, 0
        spaces = self._word(context + _LIST_AT)
        used_at = self._variables.get(counter, context + _USED_AT)  # since JDK 25 in the context
        reserved, committed = (self._word(spaces + at) for at in _COMMITTED_AT)
        used = self._word(used_at)
        return (_WORD_BYTES * used, _WORD_BYTES * committed) if used <= committed <= reserved else None

    def _heap_max(self, known: list[Usage], committed: int) -> int:
        """CollectedHeap::max_capacity()."""
        if self._flags.get("UseParallelGC"):
            return self._parallel_max(committed)
        if self._flags.get("UseSerialGC") or self._flags.get("UseConcMarkSweepGC"):
            return sum(each.max for each in known)
        return max(each.max for each in known)

    def _parallel_max(self, committed: int) -> int:
        """What is reserved without a survivor space: the largest possible one where sizes adapt."""
        young, old = (self._word(self._at(field, "ParallelScavengeHeap")) for field in ("_young_gen", "_old_gen"))
        largest = self._word(young + self._at("_max_gen_size", "PSYoungGen"))
        reserved = largest + self._word(old + self._at("_max_gen_size", "PSOldGen"))
        ratio = self._flags.get("MinSurvivorRatio")
        if self._flags.get("UseAdaptiveSizePolicy") and isinstance(ratio, int) and ratio > 0:
            reserved -= largest // ratio // _PARALLEL_ALIGNMENT * _PARALLEL_ALIGNMENT
        else:
            reserved -= self._space(self._word(young + self._at("_to_space", "PSYoungGen")), "MutableSpace").committed
        return max(reserved, committed)

    def _at(self, field: str, *types: str) -> int:
        return self._structs.at(*((name, field) for name in types))

    def _word(self, address: int) -> int:
        return u64(self._memory, address) or 0
