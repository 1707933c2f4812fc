"""Time at safepoints, by the JVM's own counters."""

from __future__ import annotations

import jvms
import pytest

from opskit.jvm.attach.client import AttachClient
from opskit.jvm.perfdata.hsperfdata import Counter, PerfData, Unit
from opskit.jvm.perfdata.stop_clock import StopClock, stopped_s
from opskit.proc.fs import ProcFS


def perf(version, **ticks):
    counters = {f"sun.rt.{name}": Counter(value, Unit.TICKS) for name, value in ticks.items()}
    counters["sun.os.hrt.frequency"] = Counter(1000, Unit.HERTZ)
    counters["java.property.java.vm.specification.version"] = Counter(version, Unit.STRING)
    return PerfData("x", accessible=True, counters=counters)


@pytest.mark.parametrize(("version", "seconds"), [("1.8", 3.0), ("11", 3.0), ("13", 5.0), ("25", 5.0)])
def test_reaching_the_safepoint_belongs_to_the_stop(version, seconds):
    """Since JDK 13 the time to safepoint has a counter of its own."""
    assert stopped_s(perf(version, safepointTime=3000, safepointSyncTime=2000)) == seconds


def test_what_is_not_counted_is_unknown():
    """Unknown, not 0."""
    assert stopped_s(perf("17")) is None
    assert StopClock(ProcFS(), None).read_s() is None


def test_a_real_jvm_counts_its_stops(workload, jvm_version):
    """A thread dump advances the counter by at most the time that it took."""
    jvm = workload("sleep=5", version=jvm_version)
    client = AttachClient(ProcFS(), jvm.pid, jvms.START_S)
    clock = StopClock(client.fs, client.target.jvm.perf)
    before = clock.read_s()
    client.thread_dump()
    after = clock.read_s()
    assert 0 < after - before < jvms.START_S
    jvm.stop()
    assert clock.read_s() is None
