"""HotSpot's memory pools and memory managers, which java.lang.management shows: MemoryService::_pools_list and _managers_list.

Source: src/hotspot/share/services/memoryPool.hpp, memoryManager.hpp. vmStructs does not describe them: their layout is the same in
JDK 11 to 25, but for a field before the counters of a collector, whose place is found by what follows it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.proc.memory import c_string, i32, u64
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

POOLS, MANAGERS = "_ZN13MemoryService11_pools_listE", "_ZN13MemoryService14_managers_listE"
_MOST, _MOST_NAME_BYTES = 16, 128
_HEAP, _NON_HEAP = 1, 2
_POOL = struct.Struct("<QQi4xqqB7x5Qi4x4q4q4Q")  # vtable, name, type, init, max, available, managers, their number, …
_MANAGER = struct.Struct("<Q10Qi4xQ")  # vtable, pools, their number, name
_THRESHOLD = struct.Struct("<??6xQQ")  # supports high, low; high, low
_STAT = struct.Struct("<QqqQQi4x")  # index, start, end, usages before, after, their number
_USAGE = struct.Struct("<4q")
_FIRST_STAT, _LAST_STAT = 104, 200  # where _last_gc_stat may be in a GCMemoryManager


class Usage(NamedTuple):
    """Bytes of a java.lang.management.MemoryUsage; -1: undefined. Its order is HotSpot's."""

    init: int
    used: int
    committed: int
    max: int


class Pool(NamedTuple):
    """A MemoryPool. `address`, `end`: of the fields of its base class, behind which those of its own class are.

    `usage_threshold`, `collection_threshold`: None where the pool supports none. `has_usage_sensor`, `has_collection_sensor`: whether
    code in the JVM has asked to be told when it is exceeded.
    """

    address: int
    name: str
    is_heap: bool
    init: int
    max: int
    is_available: bool
    managers: tuple[int, ...]
    peak: Usage
    after_collection: Usage
    usage_threshold: int | None
    collection_threshold: int | None
    has_usage_sensor: bool
    has_collection_sensor: bool


class Collection(NamedTuple):
    """The last one. Times in ticks since the JVM's start; usages before and after by the pools' order."""

    id: int
    start_ticks: int
    end_ticks: int
    before: tuple[Usage, ...]
    after: tuple[Usage, ...]


class Manager(NamedTuple):
    """A MemoryManager. `collections`, `nanoseconds` (of collections), `threads`: of a collector, else None."""

    address: int
    name: str
    pools: tuple[int, ...]
    collections: int | None = None
    nanoseconds: int | None = None
    threads: int | None = None
    last: Collection | None = None


class MemoryService:
    """The pools and managers of one JVM. Raises NotSupported where they are not found as expected."""

    def __init__(self, structs: VmStructs, memory: Memory, variables: Mapping[str, int]) -> None:
        self._memory = memory
        self._length_at = structs.at(("GrowableArrayBase", "_len"), ("GenericGrowableArray", "_len"))
        self._data_at = structs.at(("GrowableArray<int>", "_data"))
        pools = [self._pool(address) for address in self._list(variables, POOLS)]
        self.pools = [pool for pool in pools if pool is not None]
        if len(self.pools) != len(pools):
            raise NotSupported("the memory pools of this JVM have an unknown layout")
        managers = [self._manager(address) for address in self._list(variables, MANAGERS)]
        self.managers = [manager for manager in managers if manager is not None]

    def _list(self, variables: Mapping[str, int], name: str) -> list[int]:
        if name not in variables:
            raise NotSupported("the table of symbols of this JVM's libjvm lacks MemoryService")
        array = u64(self._memory, variables[name]) or 0
        count = i32(self._memory, array + self._length_at) or 0
        data = u64(self._memory, array + self._data_at) or 0
        if not 0 < count <= _MOST:
            raise NotSupported("this JVM has no memory pools yet, or their list has an unknown layout")
        return [u64(self._memory, data + 8 * number) or 0 for number in range(count)]

    def _pool(self, address: int) -> Pool | None:
        data = self._memory.read(address, _POOL.size)
        if len(data) < _POOL.size:
            return None
        _, name_at, kind, init, most, available, *rest = _POOL.unpack(data)
        managers, count, peak, after = rest[:5], rest[5], rest[6:10], rest[10:14]
        name = self._name(name_at)
        if name is None or kind not in (_HEAP, _NON_HEAP) or not 0 <= count <= len(managers):
            return None
        usage_threshold, collection_threshold = (self._threshold(each) for each in rest[14:16])
        return Pool(
            address, name, kind == _HEAP, init, most, bool(available), tuple(managers[:count]), Usage(*peak), Usage(*after),
            usage_threshold, collection_threshold, bool(rest[16]), bool(rest[17]),
        )  # fmt: skip

    def _threshold(self, address: int) -> int | None:
        data = self._memory.read(address, _THRESHOLD.size)
        if len(data) < _THRESHOLD.size:
            return None
        supports, _, high, _ = _THRESHOLD.unpack(data)
        return high if supports else None

    def _manager(self, address: int) -> Manager | None:
        data = self._memory.read(address, _MANAGER.size)
        if len(data) < _MANAGER.size:
            return None
        _, *rest = _MANAGER.unpack(data)
        pools, count, name_at = rest[:10], rest[10], rest[11]
        name = self._name(name_at)
        if name is None or not 0 <= count <= len(pools):
            return None
        found = Manager(address, name, tuple(pools[:count]))
        return self._with_counts(found)

    def _with_counts(self, manager: Manager) -> Manager:
        """With the counters of a collector: `_num_collections`, a timer of three words, `_last_gc_stat`, a lock, `_current_gc_stat`."""
        for at in range(_FIRST_STAT + 32, _LAST_STAT, 8):
            words = self._memory.read(manager.address + at - 32, 64)
            if len(words) < 64:
                break
            count, nanoseconds, _, active, last_at, _, current_at = struct.unpack_from("<7Q", words)
            last, current = self._stat(last_at), self._stat(current_at)
            if last is None or current is None or active & 0xFF > 1:
                continue
            threads = struct.unpack_from("<i", words, 56)[0]
            return manager._replace(
                collections=count, nanoseconds=nanoseconds, threads=threads, last=last if last.id else None
            )
        return manager

    def _stat(self, address: int) -> Collection | None:
        data = self._memory.read(address, _STAT.size) if address % 8 == 0 and address else b""
        if len(data) < _STAT.size:
            return None
        number, start, end, before_at, after_at, count = _STAT.unpack(data)
        if count != len(self.pools):
            return None
        before, after = self._usages(before_at, count), self._usages(after_at, count)
        return Collection(number, start, end, before, after) if before and after else None

    def _usages(self, address: int, count: int) -> tuple[Usage, ...]:
        data = self._memory.read(address, count * _USAGE.size)
        return tuple(Usage(*each) for each in _USAGE.iter_unpack(data)) if len(data) == count * _USAGE.size else ()

    def _name(self, address: int) -> str | None:
        found = c_string(self._memory, address, _MOST_NAME_BYTES) if address else None
        return found.decode("latin-1") if found else None
