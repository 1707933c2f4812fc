"""The meaning of hsperfdata counters, which differs between collectors and releases (JDK 8 to 25).

Generations: with Serial, Parallel and CMS they share the heap, so their limits add up. With G1, ZGC and Shenandoah each may
grow to the whole heap, so the largest limit is the heap's. Generation 2 is JDK 7's permanent generation, outside the heap.

Collector times are pauses, without concurrent work. Only Shenandoah adds its concurrent phases to the same counters, so its
pauses are unknown. ZGC counts pauses, not collections, and has no counters before JDK 17. Collectors are numbered 0 young,
1 full, 2 the pauses of a concurrent cycle.

Before JDK 21, G1's capacities are 8 bytes a space too large. Negative values are unknown: only a damaged or hostile file has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.jvm.perfdata.hsperfdata import PerfData

_PAGE = 4096
_SHARING = frozenset({"Copy:MSC", "ParScav:MSC", "ParNew:CMS", "Copy:CMS", "ParNew:MSC"})
_SAMPLED = frozenset({"Serial", "Parallel", "CMS", "Epsilon"})  # up to JDK 24 a sampler writes their use every 50 ms
_POLICIES = {
    "GarbageFirst": "G1", "Copy:MSC": "Serial", "ParScav:MSC": "Parallel", "ParNew:CMS": "CMS", "Copy:CMS": "CMS",
    "ParNew:MSC": "Serial",
}  # fmt: skip
# What gc_work() reads.
GC_COUNTERS = (
    "sun.gc.policy.name", "sun.gc.generation.0.capacity", "sun.gc.generation.1.name",
    *(f"sun.gc.collector.{number}.{what}" for number in range(4) for what in ("name", "invocations", "time")),
)  # fmt: skip


_GENERATIONS = [f"sun.gc.generation.{number}" for number in range(2)]
# What heap() and running_pause_s() read.
HEAP_COUNTERS = (
    *(f"{name}.{what}" for name in _GENERATIONS for what in ("capacity", "maxCapacity", "spaces")),
    *(f"{name}.space.{number}.used" for name in _GENERATIONS for number in range(8)),
)
PAUSE_COUNTERS = (
    "sun.rt.createVmBeginTime",
    *(f"sun.gc.collector.{number}.last{end}Time" for number in range(3) for end in ("Entry", "Exit")),
)


class Heap(NamedTuple):
    """The Java heap in bytes: used by objects (dead ones too), committed, its limit.

    `used_bytes` is as of the last collection or cycle, except with Serial and Parallel before JDK 25; None: there was none yet.
    """

    used_bytes: int | None
    committed_bytes: int
    max_bytes: int


def heap(perf: PerfData) -> Heap | None:
    """The heap's sizes; None without the counters, or with a negative one."""
    generations = ("sun.gc.generation.0", "sun.gc.generation.1")
    names = [name for name in generations if perf.get(f"{name}.capacity") is not None]
    sizes = [perf.number(f"{name}.capacity") or 0 for name in names]
    limits = [perf.number(f"{name}.maxCapacity") or 0 for name in names]
    used = [size for name in names for size in _used(perf, name)]
    if not names or min(*sizes, *limits, *used, 0) < 0:
        return None
    shared = perf.text("sun.gc.policy.name") in _SHARING
    return Heap(
        _known(perf, sum(used)), sum(map(_whole_pages, sizes)), sum(limits) if shared else _whole_pages(max(limits))
    )


def _known(perf: PerfData, used_bytes: int) -> int | None:
    """The used bytes; None before the first collection of a collector that writes them at collections only."""
    counts = [perf.number(f"sun.gc.collector.{number}.invocations") for number in range(3)]
    has_collected = any(counts) or all(count is None for count in counts)
    return used_bytes or None if has_collected or collector(perf) in _SAMPLED else None


def _used(perf: PerfData, generation: str) -> list[int]:
    spaces = perf.number(f"{generation}.spaces") or 0
    # A generation has a handful of spaces; a hostile file may claim any number.
    return [perf.number(f"{generation}.space.{number}.used") or 0 for number in range(min(spaces, 8))]


def _whole_pages(size: int) -> int:
    return size // _PAGE * _PAGE


def collector(perf: PerfData) -> str | None:
    """G1, ZGC-generational, ZGC, Shenandoah, Parallel, Serial, CMS or Epsilon; None: unknown."""
    policy = perf.text("sun.gc.policy.name")
    if policy:
        return _POLICIES.get(policy, policy)
    names = [perf.text(f"sun.gc.collector.{number}.name") or "" for number in range(4)]
    if any(name.startswith("Shenandoah") for name in names):
        return "Shenandoah"
    if any(name.startswith("ZGC") for name in names):
        return "ZGC-generational" if perf.number("sun.gc.generation.0.capacity") is not None else "ZGC"
    old = perf.text("sun.gc.generation.1.name")
    if any(name.startswith("Z ") for name in names) or old == "old":
        return "ZGC"
    return "Epsilon" if old == "Heap" else None


def counts_new_objects(perf: PerfData) -> bool:
    """Whether the used heap may contain objects that were made since the last collection."""
    return collector(perf) in _SAMPLED


class GcWork(NamedTuple):
    """Since the JVM's start: collections, GC pauses, and seconds in these pauses. None: not counted by this collector."""

    collections: int | None
    pauses: int | None
    pause_s: float | None


def gc_work(perf: PerfData) -> GcWork:
    """How often and how long the collector paused the application."""
    name = collector(perf)
    if name == "Epsilon":
        return GcWork(0, 0, 0.0)
    counts = [perf.number(f"sun.gc.collector.{number}.invocations") for number in range(3)]
    times = [perf.ticks_s(f"sun.gc.collector.{number}.time") for number in range(3)]
    known = [(count, time) for count, time in zip(counts, times) if count is not None and time is not None]
    if not known or name == "Shenandoah" or any(value is not None and value < 0 for value in (*counts, *times)):
        return GcWork(None, None, None)
    cycles = name is not None and name.startswith("ZGC")
    collections = None if cycles else sum(count or 0 for count in counts[:2])
    return GcWork(collections, sum(count for count, _ in known), sum(time for _, time in known))


def running_pause_s(perf: PerfData, now_s: float) -> float:
    """How long the GC pause lasts that is going on; 0 outside of one. Its time is counted at its end. `now_s`: the wall clock."""
    began_ms = perf.number("sun.rt.createVmBeginTime")
    times = [
        [perf.ticks_s(f"sun.gc.collector.{number}.last{end}Time") for end in ("Entry", "Exit")] for number in range(3)
    ]
    entries = [entry for entry, end in times if entry is not None and end is not None and entry > end]
    if began_ms is None or not entries or collector(perf) == "Shenandoah":
        return 0.0
    return max(0.0, now_s - began_ms / 1000 - max(entries))
