"""java.lang:type=Memory, MemoryPool, MemoryManager and GarbageCollector.

By HotSpot's own pools and collectors in its memory. Without rights to that, the collectors' counters in hsperfdata: they count the
same collections, and measure their time a few microseconds apart.
"""

from __future__ import annotations

from contextlib import suppress
from math import floor
from typing import TYPE_CHECKING

from opskit.collect.jmx.made import COUNTERS, MEMORY, bean, usage_value
from opskit.errors import NotSupported
from opskit.jvm.memory.finalization import read_pending_finalizations
from opskit.jvm.memory.memory_service import MemoryService, Usage
from opskit.jvm.memory.pool_use import PoolUse
from opskit.jvm.perfdata.counters import collector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.collect.jmx.facts import Bean, Value
    from opskit.collect.jmx.sources import Sources
from opskit.jvm.memory.memory_service import Collection, Manager, Pool

_ELSE = "--agent reads them"
LAST_CAUSE = "LastGcCause"  # not in JMX: of the collector that has collected last
_NS_PER_MS, _MS_PER_S = 1_000_000, 1000
_CMS_OLD, _GENERATION = "CMS Old Gen", "sun.gc.generation.1.space.0"
# By collector: the names of the counters sun.gc.collector.0, 1 and 2.
_COUNTED = {
    "G1": ("G1 Young Generation", "G1 Old Generation", "G1 Concurrent GC"),
    "Parallel": ("PS Scavenge", "PS MarkSweep", None),
    "Serial": ("Copy", "MarkSweepCompact", None),
    "CMS": ("ParNew", "ConcurrentMarkSweep", None),
}
_FIRST_CONCURRENT = 20  # the release that has G1 Concurrent GC


def memory_beans(sources: Sources) -> list[Bean]:
    """All of them; those that are not known are told in `sources.missing`."""
    try:
        with suppress(NotSupported):
            sources.boot_classes()
        return sources.steady("memory pools and collectors", lambda: _read(sources)) or []
    except NotSupported as error:
        if sources.memory is not None:
            sources.missing.append(f"memory pools: {error}; {_ELSE}")
        return [*_counted_collectors(sources)]


def _read(sources: Sources) -> list[Bean] | None:
    """The beans; None where a collection has ended meanwhile. Raises NotSupported."""
    structs, memory = sources.opened
    service = MemoryService(structs, memory, sources.variables)
    use = PoolUse(structs, memory, sources.variables, sources.flags)
    usages = {pool.address: _usage(sources, use, pool) for pool in service.pools}
    unread = [pool.name for pool in service.pools if usages[pool.address] is None]
    if unread:
        sources.missing.append(f"Usage of {', '.join(unread)}: this JVM does not describe it; {_ELSE}")
    beans = [_memory(sources, service, use, usages)]
    beans += [_pool(pool, usages[pool.address], service) for pool in service.pools]
    latest = max((each for each in service.managers if each.last), key=_ended, default=None)
    beans += [_manager(sources, manager, service, is_latest=manager is latest) for manager in service.managers]
    if all(manager.collections is None for manager in service.managers):  # an older layout
        beans += _counted_collectors(sources)
    sources.forget()
    is_same = MemoryService(structs, memory, sources.variables).managers == service.managers
    return beans if is_same else None  # concurrent collectors change them without a safepoint


def _usage(sources: Sources, use: PoolUse, pool: Pool) -> Usage | None:
    found = use.usage(pool)
    if found is None and pool.name == _CMS_OLD:  # CMS counts its free lists, and tells the sum in its counters
        used, committed = (sources.number(f"{_GENERATION}.{what}") for what in ("used", "capacity"))
        if used is not None and committed is not None:
            return Usage(pool.init, used, committed, pool.max)
    return found


def _memory(sources: Sources, service: MemoryService, use: PoolUse, usages: Mapping[int, Usage | None]) -> Bean:
    heap = use.heap_usage(service.pools, usages)
    other = use.non_heap_usage(service.pools, usages)
    values: dict[str, Value] = {
        "HeapMemoryUsage": usage_value(heap),
        "NonHeapMemoryUsage": usage_value(other),
        "ObjectPendingFinalizationCount": _pending(sources),
        "Verbose": sources.logs_info("gc"),
    }
    return bean("java.lang:type=Memory", (MEMORY, values))


def _pending(sources: Sources) -> int | None:
    """The objects whose finalizers have not run yet; None: not readable now."""
    try:
        return read_pending_finalizations(sources.objects(), sources.boot_classes())
    except NotSupported:
        return None


def _pool(pool: Pool, usage: Usage | None, service: MemoryService) -> Bean:
    names = {manager.address: manager.name for manager in service.managers}
    values: dict[str, Value] = {
        "Name": pool.name,
        "Type": "HEAP" if pool.is_heap else "NON_HEAP",
        "Valid": True,
        "MemoryManagerNames": [names[each] for each in pool.managers] if {*pool.managers} <= {*names} else None,
        "Usage": usage_value(usage),
        "PeakUsage": usage_value(_peak(pool, usage)),
        "CollectionUsage": usage_value(pool.after_collection) if pool.collection_threshold is not None else None,
        "UsageThresholdSupported": pool.usage_threshold is not None,
        "CollectionUsageThresholdSupported": pool.collection_threshold is not None,
        "UsageThreshold": pool.usage_threshold,
        "CollectionUsageThreshold": pool.collection_threshold,
    }
    if pool.usage_threshold is not None and not pool.has_usage_sensor:
        values["UsageThresholdCount"] = 0
    if pool.collection_threshold is not None and not pool.has_collection_sensor:
        values["CollectionUsageThresholdCount"] = 0
    if usage is not None and pool.usage_threshold is not None:
        values["UsageThresholdExceeded"] = 0 < pool.usage_threshold <= usage.used
    if pool.collection_threshold is not None:
        values["CollectionUsageThresholdExceeded"] = 0 < pool.collection_threshold <= pool.after_collection.used
    return bean(f"java.lang:type=MemoryPool,name={pool.name}", (MEMORY, values))


def _peak(pool: Pool, usage: Usage | None) -> Usage | None:
    """The peak, which getPeakUsage() brings up to date before it answers."""
    if usage is None:
        return None

    def larger(one: int, other: int) -> int:
        return -1 if -1 in (one, other) else max(one, other)  # -1: the largest size_t

    peak = pool.peak
    return Usage(
        pool.init, max(peak.used, usage.used), max(peak.committed, usage.committed), larger(peak.max, usage.max)
    )


def _ended(manager: Manager) -> int:
    return manager.last.end_ticks if manager.last is not None else 0


def _manager(sources: Sources, manager: Manager, service: MemoryService, *, is_latest: bool) -> Bean:
    names = {pool.address: pool.name for pool in service.pools}
    values: dict[str, Value] = {
        "Name": manager.name,
        "Valid": True,
        "MemoryPoolNames": [names[each] for each in manager.pools if each in names],
    }
    if manager.collections is None:
        return bean(f"java.lang:type=MemoryManager,name={manager.name}", (MEMORY, values))
    values["CollectionCount"] = manager.collections
    values["CollectionTime"] = (manager.nanoseconds or 0) // _NS_PER_MS
    values["LastGcInfo"] = _last(sources, manager, service.pools)
    cause: dict[str, Value] = {LAST_CAUSE: sources.text("sun.gc.lastCause") if is_latest else None}
    return bean(f"java.lang:type=GarbageCollector,name={manager.name}", (MEMORY, values), (COUNTERS, cause))


def _last(sources: Sources, manager: Manager, pools: Sequence[Pool]) -> Value:
    last: Collection | None = manager.last
    if last is None:
        return None
    frequency = sources.number("sun.os.hrt.frequency") or _NS_PER_MS * _MS_PER_S
    start, end = (ticks * _MS_PER_S // frequency for ticks in (last.start_ticks, last.end_ticks))
    before, after = (
        {pool.name: usage_value(usage) for pool, usage in zip(pools, usages)} for usages in (last.before, last.after)
    )
    return {
        "id": last.id, "startTime": start, "endTime": end, "duration": end - start, "GcThreadCount": manager.threads,
        "memoryUsageBeforeGc": before, "memoryUsageAfterGc": after,
    }  # fmt: skip


def _counted_collectors(sources: Sources) -> Iterator[Bean]:
    names = _COUNTED.get(collector(sources.perf) or "", ()) if sources.perf is not None else ()
    for number, name in enumerate(names):
        if name is None or (number == 2 and (sources.major or 0) < _FIRST_CONCURRENT):
            continue
        count = sources.number(f"sun.gc.collector.{number}.invocations")
        seconds = sources.perf.ticks_s(f"sun.gc.collector.{number}.time") if sources.perf is not None else None
        values: dict[str, Value] = {
            "Name": name,
            "CollectionCount": count,
            "CollectionTime": None if seconds is None else floor(seconds * _MS_PER_S),
        }
        yield bean(f"java.lang:type=GarbageCollector,name={name}", (COUNTERS, values))
