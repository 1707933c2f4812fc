"""Collectors by the JVM's counters, where its memory cannot be read."""

from __future__ import annotations

from types import SimpleNamespace

from opskit.collect.jmx.beans_of_memory import memory_beans
from opskit.errors import NotSupported
from opskit.jvm.perfdata.hsperfdata import Counter, PerfData, Unit


class Unopened(SimpleNamespace):
    """Sources without the JVM's memory."""

    memory = None

    @property
    def opened(self):
        raise NotSupported("no rights")

    boot_classes = steady = lambda self, *_: self.opened

    def number(self, name):
        return self.perf.number(name)


def test_times_are_whole_milliseconds():
    """As in JMX, which cuts what is below one."""
    counters = {
        "sun.gc.policy.name": Counter("Copy:MSC", None),
        "sun.os.hrt.frequency": Counter(1_000_000_000, Unit.HERTZ),
        "sun.gc.collector.0.invocations": Counter(3, Unit.EVENTS),
        "sun.gc.collector.0.time": Counter(13_999_999, Unit.TICKS),
    }
    found = memory_beans(Unopened(perf=PerfData("x", True, counters), missing=[], major=8))
    values = {each.name: each.value for each in found[0].attributes}
    assert values == {"Name": "Copy", "CollectionCount": 3, "CollectionTime": 13}
