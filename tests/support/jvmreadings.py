"""Readings of a JVM as the tests need them."""

from __future__ import annotations

from opskit.collect.jvms import Reading, Seen
from opskit.jvm.discover import HOTSPOT, Jvm
from opskit.jvm.perfdata.counters import GcWork, Heap

MIB = 1 << 20


def reading(
    at_s=100.0, cpu_s=10.0, cpu=None, rss=50 * MIB, gc_s=0.0, stopped_s=0.0, age_s=None, largest=64 * MIB, pauses=4, file=None
):  # fmt: skip
    """A reading at a moment of the host's clock, by default as many seconds after the start."""
    heap, gc = Heap(8 * MIB, 8 * MIB, largest), GcWork(pauses, pauses, gc_s)
    return Reading(at_s, at_s if age_s is None else age_s, cpu_s, gc, stopped_s, cpu, heap, rss, 20, file)


def seen(pid=7, memory=None, **numbers):
    """A JVM with this reading."""
    return Seen(Jvm(pid, pid, HOTSPOT, 1000, 5, "app.Main"), reading(**numbers), "app", None, memory, None, None)
