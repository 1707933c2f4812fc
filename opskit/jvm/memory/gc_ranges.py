"""What a collector keeps beside the Java heap: card table, block offsets, mark bitmaps, records of regions.

vmStructs describes few of them. The others are found in the collector's own objects: two words that are the begin and the end, or the
begin and the size, of anonymous memory with no other known use.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import TYPE_CHECKING

from opskit.jvm.memory.heap_ranges import heap_address
from opskit.proc.files.maps import HEAP_BYTES
from opskit.proc.malloc.arenas import heap_at
from opskit.proc.memory import PAGE_BYTES, u64
from opskit.proc.spans import is_anonymous, merged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.jvm.memory.flags import FlagValue
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.files.smaps import Region
    from opskit.proc.memory import Memory
    from opskit.proc.spans import Span

_CARD_BYTES = 128  # of the heap at least for one byte of the card table; 512 by default
_LARGEST_SHARE = 16  # a table has at most this part of the heap's size
_NEAR_WORDS = 32  # of an object, in which bounds of any size are taken
_BITMAP_SHARES = (64, 32)  # a bit, or two, for each 8 bytes of the heap
_ALIGNMENTS = (PAGE_BYTES, 64 << 10, 2 << 20)
_MOST_OBJECTS, _OBJECT_BYTES, _LARGE_OBJECT_BYTES, _LARGEST_OBJECT_BYTES, _DEPTH = 384, 256, 1024, 8192, 2
_HEAPS = ("G1CollectedHeap", "ShenandoahHeap", "GenCollectedHeap", "SerialHeap", "ParallelScavengeHeap")
_MOST_DATA_BYTES, _MOST_MENTIONS, _MENTION_BYTES = 8 << 20, 32, 128
_MOST_REGIONS = 1 << 20
_ZGC_HEAP_BYTES, _LARGEST_MAP_BYTES, _GRANULES = 16384, 1 << 30, 512
_MAP_WITHOUT_SIZE, _MAP_BYTES = ("ZAddressRangeMapForPageTable", "_map"), 16 << 20  # JDK 11 and 12, for 4 TiB
_MARK_CHUNK_BYTES = 8192  # of G1's mark stack
COLLECTOR_FLAGS = ("UseZGC", "UseShenandoahGC", "UseParallelGC", "UseG1GC", "MarkStackSize", "ZMarkStackSpaceLimit")
_LIMIT_OF_MARK_STACKS = "ZMarkStackSpaceLimit"
_MARK_STACKS = (0x150000000000, 0x160000000000)  # JDK 11, without such a limit (gc/z/zGlobals_linux_x86.hpp)
_WORD = struct.Struct("<Q")


class Collector:
    """The collector of one JVM. `flags`: COLLECTOR_FLAGS; `heap`: where its heap is; `free`: anonymous memory of which no other use is known, sorted."""

    def __init__(
        self,
        structs: VmStructs,
        memory: Memory,
        regions: Sequence[Region],
        flags: dict[str, FlagValue],
        heap: Sequence[Span],
        free: Sequence[Span],
    ) -> None:
        self._structs, self._memory, self._regions = structs, memory, regions
        self._heap, self._free = heap, free
        self._heap_bytes = sum(end - start for start, end in heap)
        self._flags = flags
        self._is_parallel = flags.get("UseParallelGC") is True

    def spans(self) -> list[Span]:
        """The tables of the collector. Raises NotSupported."""
        if self._flags.get("UseZGC"):
            limit = self._flags.get(_LIMIT_OF_MARK_STACKS)
            fixed = [_MARK_STACKS] if self._is_free(*_MARK_STACKS) else []
            stacks = self._mark_stacks(limit) if isinstance(limit, int) and limit > 0 else fixed
            return merged([*stacks, *self._granule_maps()])
        found = [self._card_table(), self._region_records()]
        return merged([*(span for span in found if span is not None), *self._pairs()])

    def _card_table(self) -> Span | None:
        """The card table, in whole pages; None: this collector has none."""
        map_at, size_at = (
            self._structs.find(("CardTable", field), ("CardTableModRefBS", field))
            for field in ("_byte_map", "_byte_map_size")
        )
        table = self._card_table_address()
        if map_at is None or size_at is None or not table:
            return None
        start, size = self._word(table + map_at), self._word(table + size_at)
        if not start or not 0 < size <= self._heap_bytes // _CARD_BYTES + PAGE_BYTES:
            return None
        return _whole_pages(start, start + size)

    def _card_table_address(self) -> int:
        """Where the CardTable is; 0: there is none. In JDK 8 the heap refers to it."""
        barrier, table_at = map(
            self._structs.find, (("BarrierSet", "_barrier_set"), ("CardTableBarrierSet", "_card_table"))
        )
        of_heap = self._structs.find(("CollectedHeap", "_barrier_set"))
        if barrier is not None and table_at is not None:
            return self._word(self._word(barrier) + table_at)
        return self._word(heap_address(self._structs, self._memory) + of_heap) if of_heap is not None else 0

    def _region_records(self) -> Span | None:
        """Shenandoah's records of its regions, which lie one after another."""
        regions_at, count_at = (self._structs.find(("ShenandoahHeap", field)) for field in ("_regions", "_num_regions"))
        size = self._structs.sizes.get("ShenandoahHeapRegion")
        if regions_at is None or count_at is None or not size:
            return None
        heap = heap_address(self._structs, self._memory)
        first, count = self._word(self._word(heap + regions_at)), self._word(heap + count_at)
        span = _whole_pages(first, first + size * count)
        return span if 0 < count <= _MOST_REGIONS and self._is_free(*span) else None

    def _mark_stacks(self, limit: int) -> list[Span]:
        """What ZGC reserves for its mark stacks (JDK 11 to 24): it commits them from the begin on."""
        reserved = (
            (each.end - limit, each.end)
            for each in self._regions
            if each.permissions == "---p" and is_anonymous(each) and limit // 2 < each.end - each.start <= limit
        )
        return [span for span in reserved if self._is_free(*span)]

    def _granule_maps(self) -> Iterator[Span]:
        """ZGC's tables with a pointer for each 2 MiB of its address space: of pages, and of forwardings of each generation."""
        heap = heap_address(self._structs, self._memory)
        data = self._memory.read(heap, _ZGC_HEAP_BYTES)
        words = struct.unpack_from(f"<{len(data) // 8}Q", data)
        for before, start in zip(words, words[1:]):
            is_size = 0 < 8 * before <= _LARGEST_MAP_BYTES and before % _GRANULES == 0
            if is_size and start and start % PAGE_BYTES == 0 and self._is_free(start, start + 8 * before):
                yield start, start + 8 * before
        path = ("ZCollectedHeap", "_heap"), ("ZHeap", "_pagetable"), ("ZPageTable", "_map"), _MAP_WITHOUT_SIZE
        places = [self._structs.find(name) for name in path]
        start = 0 if None in places else self._word(heap + sum(place or 0 for place in places))
        if start and self._is_free(start, start + _MAP_BYTES):
            yield start, start + _MAP_BYTES

    def _pairs(self) -> Iterator[Span]:
        """Memory whose bounds are in the collector's objects: those near its heap, and what these refer to."""
        seen: set[int] = set()
        layer = self._roots()
        for depth in range(_DEPTH + 1):
            below: list[tuple[int, int]] = []
            for address, size in layer:
                if address in seen or len(seen) >= _MOST_OBJECTS:
                    continue
                seen.add(address)
                data = self._memory.read(address, size)
                words = struct.unpack_from(f"<{len(data) // 8}Q", data)
                yield from self._bounds(words[:_NEAR_WORDS] if depth else words)
                yield from self._bounds(words[_NEAR_WORDS:] if depth else (), any_size=False)
                if depth < _DEPTH:
                    most = _OBJECT_BYTES if depth else _LARGE_OBJECT_BYTES
                    below += [(word, most) for word in words if self._is_pointer(word)]
            layer = below

    def _roots(self) -> list[tuple[int, int]]:
        """Addresses and sizes of the collector's first objects."""
        structs = self._structs
        size = max((structs.sizes.get(name, 0) for name in _HEAPS), default=0)
        found = [(heap_address(structs, self._memory), min(max(size, _OBJECT_BYTES), _LARGEST_OBJECT_BYTES))]
        static = structs.find(("ParallelScavengeHeap", "_old_gen"))
        if static is not None and self._is_parallel:
            return [(self._word(static), 2 * _OBJECT_BYTES), *self._mentions(), *found]
        old = structs.find(("SerialHeap", "_old_gen"), ("GenCollectedHeap", "_old_gen"))
        return found if old is None else [(self._word(found[0][0] + old), 2 * _OBJECT_BYTES), *found]

    def _mentions(self) -> Iterator[tuple[int, int]]:
        """Places in libjvm's static data with the heap's begin: Parallel keeps its bitmap and its summary there."""
        wanted = _WORD.pack(self._heap[0][0]) if self._heap else b""
        found, before, left = 0, 0, _MOST_DATA_BYTES
        for region in self._regions:
            is_data = region.name.endswith("/libjvm.so") or (is_anonymous(region) and region.start == before)
            before = region.end if is_data else 0
            if not is_data or not region.permissions.startswith("rw") or not wanted:
                continue
            most = min(region.end - region.start, left)
            left -= most
            for page in range(region.start, region.start + most, PAGE_BYTES):
                data = self._memory.read(page, PAGE_BYTES)  # a page that was never used reads as empty
                at = data.find(wanted)
                while at >= 0 and found < _MOST_MENTIONS:
                    found += 1
                    yield page + at, _MENTION_BYTES
                    at = data.find(wanted, at + 8)

    def _bounds(self, words: Sequence[int], *, any_size: bool = True) -> Iterator[Span]:
        """Each two words that are the begin and the end of a table, or the begin of a bitmap and its size.

        Shenandoah gives the size in words, Parallel in bytes or bits, G1 that of its mark stack in chunks. G1 has tables with as
        many bytes as its bitmap has words.
        """
        for start, other in zip(words, words[1:]):
            if start % PAGE_BYTES or not start:
                continue
            if other % PAGE_BYTES == 0 and 0 < other - start <= self._heap_bytes // _LARGEST_SHARE:
                is_wanted = any_size or self._is_table_size(other - start)
                if is_wanted and self._is_free(start, other) and not self._is_in_arena(start):
                    yield start, other
            elif self._is_free(start, start + PAGE_BYTES):
                size = next(filter(self._is_table_size, self._sizes(other)), 0)
                if size and self._is_free(start, start + size) and not self._is_in_arena(start):
                    yield start, start + size

    def _sizes(self, word: int) -> tuple[int, ...]:
        """What a word beside the begin of a table may say of its size in bytes."""
        if self._flags.get("UseG1GC"):
            return (word * _MARK_CHUNK_BYTES,)
        if self._flags.get("UseShenandoahGC"):
            return (8 * word,)
        return (word, word // 8) if self._is_parallel else ()

    def _is_table_size(self, size: int) -> bool:
        """Whether a bitmap, or G1's mark stack, has this size."""
        entries = self._flags.get("MarkStackSize")
        if self._flags.get("UseG1GC"):
            return isinstance(entries, int) and 0 < size == 8 * entries
        wanted = (self._heap_bytes // share for share in _BITMAP_SHARES)
        return any(size == -(-each // align) * align for each in wanted for align in _ALIGNMENTS)

    def _is_in_arena(self, address: int) -> bool:
        """Whether it is in a heap of glibc's malloc."""
        return heap_at(self._memory, address // HEAP_BYTES * HEAP_BYTES) is not None

    def _is_free(self, start: int, end: int) -> bool:
        number = bisect_right(self._free, (start, 1 << 64)) - 1
        return number >= 0 and end <= self._free[number][1]

    def _is_pointer(self, word: int) -> bool:
        """Whether it may be the address of an object that malloc gave."""
        return word % 16 == 0 and word > PAGE_BYTES and self._is_free(word, word + 8)

    def _word(self, address: int) -> int:
        return u64(self._memory, address) or 0


def _whole_pages(start: int, end: int) -> Span:
    return start // PAGE_BYTES * PAGE_BYTES, -(-end // PAGE_BYTES) * PAGE_BYTES
