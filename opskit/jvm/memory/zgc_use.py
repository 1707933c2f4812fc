"""What ZGC's heap and its generations have in use now: ZPageAllocator (gc/z/zPageAllocator.hpp), X… of JDK 21 without generations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.memory import u32, u64

if TYPE_CHECKING:
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_MOST_NODES = 1024
_BEFORE_USED = 8  # since JDK 24, where ZPartitions have the capacity: the field behind the largest capacity


class ZgcUse:
    """The heap of one JVM with ZGC. `heap`: the address of its CollectedHeap."""

    def __init__(self, structs: VmStructs, memory: Memory, heap: int) -> None:
        self._structs, self._memory, self._heap = structs, memory, heap

    def part(self, pool: str) -> tuple[int, int] | None:
        """Bytes in use and committed of `ZHeap`, `ZGC Young Generation` or `ZGC Old Generation`. None: unknown."""
        for letter in "XZ":
            fields = (f"{letter}CollectedHeap", "_heap"), (f"{letter}Heap", "_page_allocator")
            places = [self._structs.find(field) for field in fields]
            if None in places or (letter == "X" and pool != "ZHeap"):
                continue
            allocator = self._heap + sum(place or 0 for place in places)
            found = self._in(allocator, f"{letter}PageAllocator", pool)
            if found is not None:
                return found
        return None

    def _in(self, allocator: int, owner: str, pool: str) -> tuple[int, int] | None:
        sizes = self._sizes(allocator, owner)
        if sizes is None:
            return None
        used_at, capacity = sizes
        if pool == "ZHeap":
            return min(u64(self._memory, used_at) or 0, capacity), capacity
        young, old = (u64(self._memory, used_at + 8 * number) or 0 for number in (1, 2))
        old = min(old, capacity)
        if pool == "ZGC Old Generation":
            return old, old
        return min(young, capacity - old), capacity - old

    def _sizes(self, allocator: int, owner: str) -> tuple[int, int] | None:
        """Where its use is, before that of the two generations, and its capacity."""
        most, used, capacity = (self._structs.find((owner, field)) for field in ("_max_capacity", "_used", "_capacity"))
        if used is not None and capacity is not None:
            found = allocator + used, u64(self._memory, allocator + capacity) or 0
        elif used is not None:  # JDK 11
            return self._physical(allocator, owner, allocator + used)
        elif most is not None:
            partitions = self._partitions(allocator, owner)
            if partitions is None:
                return None
            found = allocator + most + _BEFORE_USED, partitions
        else:
            return None
        limit = u64(self._memory, allocator + most) if most is not None else None
        return found if limit and found[1] <= limit else None

    def _physical(self, allocator: int, owner: str, used_at: int) -> tuple[int, int] | None:
        """The same of JDK 11, whose physical memory has the capacity."""
        manager = "ZPhysicalMemoryManager"
        fields = (owner, "_physical"), (manager, "_capacity"), (manager, "_max_capacity")
        places = [self._structs.find(field) for field in fields]
        if None in places:
            return None
        begin, at, most_at = (place or 0 for place in places)
        capacity, most = (u64(self._memory, allocator + begin + place) or 0 for place in (at, most_at))
        return (used_at, capacity) if 0 < capacity <= most else None

    def _partitions(self, allocator: int, owner: str) -> int | None:
        """The capacity of all partitions, one for each NUMA node."""
        structs = self._structs
        places = structs.find((owner, "_partitions")), structs.find(("ZPerNUMAZPartition", "_addr"))
        count_at, capacity_at = structs.find(("ZNUMA", "_count")), structs.find(("ZPartition", "_capacity"))
        size = structs.sizes.get("ZPartition")
        if None in places or count_at is None or capacity_at is None or not size:
            return None
        first = u64(self._memory, allocator + sum(place or 0 for place in places)) or 0
        count = u32(self._memory, count_at) or 0
        if not first or not 0 < count <= _MOST_NODES:
            return None
        return sum(u64(self._memory, first + number * size + capacity_at) or 0 for number in range(count))
