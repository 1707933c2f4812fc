"""What the counters of hsperfdata mean, which differs between collectors and releases (JDK 8 to 25 were looked at).

Generations: with Serial, Parallel and CMS they share the heap, so their limits add up. With G1, ZGC and Shenandoah each may
grow to the whole heap, so the largest limit is the heap's. Generation 2 is JDK 7's permanent generation, no heap.

Collector times are pauses: what a concurrent collector does beside the application is not in them. Only Shenandoah adds
its concurrent phases to the same counters, so of its pauses nothing is known. ZGC counts pauses, not collections, and has
no counters before JDK 17. Collectors are numbered 0 young, 1 full, 2 the pauses of a concurrent cycle.

G1's capacities were 8 bytes a space above the truth before JDK 21.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from opskit.jvm.perfdata.hsperfdata import PerfData

_PAGE = 4096
_SHARING = frozenset({"Copy:MSC", "ParScav:MSC", "ParNew:CMS", "Copy:CMS", "ParNew:MSC"})
_POLICIES = {
    "GarbageFirst": "G1", "Copy:MSC": "Serial", "ParScav:MSC": "Parallel", "ParNew:CMS": "CMS", "Copy:CMS": "CMS",
    "ParNew:MSC": "Serial",
}  # fmt: skip


class Heap(NamedTuple):
    """The Java heap in bytes: what objects (dead ones too) take up, what is committed, what it may grow to.

    It is what the JVM last wrote down: concurrent collectors do so once a cycle.
    """

    used_bytes: int
    committed_bytes: int
    max_bytes: int


def heap(perf: PerfData) -> Heap | None:
    """The heap's sizes; None where the JVM does not say."""
    generations = [number for number in (0, 1) if perf.number(f"sun.gc.generation.{number}.capacity") is not None]
    if not generations:
        return None
    limits = [perf.number(f"sun.gc.generation.{number}.maxCapacity") or 0 for number in generations]
    shared = perf.text("sun.gc.policy.name") in _SHARING
    return Heap(
        sum(_used(perf, number) for number in generations),
        sum(_whole_pages(perf.number(f"sun.gc.generation.{number}.capacity") or 0) for number in generations),
        sum(limits) if shared else _whole_pages(max(limits)),
    )


def _used(perf: PerfData, generation: int) -> int:
    spaces = perf.number(f"sun.gc.generation.{generation}.spaces") or 0
    # A generation has at most a handful; never believe a number enough to loop over it.
    return sum(perf.number(f"sun.gc.generation.{generation}.space.{n}.used") or 0 for n in range(min(spaces, 8)))


def _whole_pages(size: int) -> int:
    return size // _PAGE * _PAGE


def collector(perf: PerfData) -> str | None:
    """G1, ZGC-generational, ZGC, Shenandoah, Parallel, Serial, CMS or Epsilon; None where nothing tells."""
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


class GcWork(NamedTuple):
    """Since the JVM's start: collections, pauses for them, and seconds in these pauses. None: this collector does not say."""

    collections: int | None
    pauses: int | None
    pause_s: float | None


def gc_work(perf: PerfData) -> GcWork:
    """How much the application stood still for the collector."""
    name = collector(perf)
    if name == "Epsilon":
        return GcWork(0, 0, 0.0)
    counts = [perf.number(f"sun.gc.collector.{number}.invocations") for number in range(3)]
    times = [perf.ticks_s(f"sun.gc.collector.{number}.time") for number in range(3)]
    known = [(count, time) for count, time in zip(counts, times) if count is not None and time is not None]
    if not known or name == "Shenandoah":
        return GcWork(None, None, None)
    cycles = name is not None and name.startswith("ZGC")
    return GcWork(
        None if cycles else sum(count or 0 for count in counts[:2]),
        sum(count for count, _ in known),
        sum(time for _, time in known),
    )
