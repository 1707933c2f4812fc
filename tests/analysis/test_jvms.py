"""Shares of time and of limits, from one look and from two; what is trouble."""

from __future__ import annotations

import hsperf
import pytest

from opskit.analysis.jvms import Seen, findings, ordered, row
from opskit.jvm.discover import HOTSPOT, Jvm
from opskit.jvm.perfdata.hsperfdata import parse_hsperfdata
from opskit.proc.cgroup.limits import CpuLimit, MemoryLimit
from opskit.quantities import size

MIB = 1 << 20


def perf(gc_ms=0, stopped_ms=0, largest=64 * MIB):
    return parse_hsperfdata(
        hsperf.build({
            "sun.os.hrt.frequency": (1000, hsperf.HERTZ), "sun.gc.policy.name": "GarbageFirst",
            "sun.gc.generation.0.capacity": 8 * MIB, "sun.gc.generation.0.maxCapacity": largest,
            "sun.gc.collector.0.invocations": 4, "sun.gc.collector.0.time": (gc_ms, hsperf.TICKS),
            "sun.rt.safepoints": 9, "sun.rt.safepointTime": (stopped_ms, hsperf.TICKS),
        }), "built")  # fmt: skip


def seen(at_s=100.0, pid=7, cpu_s=10.0, memory=None, cpu=None, rss=50 * MIB, **counters):
    jvm = Jvm(pid, pid, HOTSPOT, 1000, 5, "app.Main", None, perf(**counters))
    return Seen(jvm, at_s, at_s, "app", cpu_s, 20, rss, None, memory, cpu, None, None)


def test_with_one_look_shares_are_of_its_life():
    got = row(seen(gc_ms=5000, stopped_ms=6000))
    assert got.cpu_percent == pytest.approx(10)
    assert got.gc_percent == pytest.approx(5)
    assert got.stopped_percent == pytest.approx(6)
    assert got.throttled_percent is None
    assert got.collector == "G1"


def test_with_two_looks_shares_are_of_the_interval():
    before = seen(100, cpu_s=10, gc_ms=5000, stopped_ms=6000, cpu=CpuLimit("/a", 2, 100, 50, 1))
    got = row(seen(104, cpu_s=16, gc_ms=6000, stopped_ms=8000, cpu=CpuLimit("/a", 2, 140, 60, 2)), before)
    assert got.cpu_percent == pytest.approx(150)
    assert got.gc_percent == pytest.approx(25)
    assert got.stopped_percent == pytest.approx(50)
    assert got.throttled_percent == pytest.approx(25)


def test_a_counter_that_ran_backwards_gives_nothing():
    before = seen(100, cpu_s=10, gc_ms=5000, cpu=CpuLimit("/a", 2, 100, 50, 1))
    got = row(seen(104, cpu_s=9, gc_ms=1000, cpu=CpuLimit("/a", 2, 10, 5, 1)), before)
    assert got.cpu_percent is None
    assert got.gc_percent is None
    assert got.throttled_percent is None
    moved = row(seen(104, cpu=CpuLimit("/b", 2, 110, 55, 1)), before)
    assert moved.throttled_percent is None
    assert row(seen(100), seen(100)).cpu_percent is None  # no time has passed


def test_a_quota_that_was_never_felt_is_no_throttling():
    assert row(seen(cpu=CpuLimit("/a", 2, 0, 0, 0))).throttled_percent == 0
    assert row(seen(cpu=CpuLimit("/a", None))).throttled_percent is None


def test_the_largest_comes_first_and_the_unknown_last():
    rows = [row(seen(pid=pid, rss=rss)) for pid, rss in ((3, 5), (1, None), (2, 9), (4, 5))]
    assert [got.pid for got in ordered(rows, "rss")] == [2, 3, 4, 1]
    assert [got.pid for got in ordered(rows, "pid")] == [1, 2, 3, 4]


def test_trouble_is_named_with_its_cause():
    codes = {
        "jvm-gc-share": seen(gc_ms=30_000),
        "jvm-cpu-throttled": seen(cpu=CpuLimit("/a", 0.5, 100, 34, 1)),
        "jvm-near-memory-limit": seen(rss=95 * MIB, memory=MemoryLimit("/a", 100 * MIB, 99 * MIB)),
        "jvm-heap-above-memory-limit": seen(memory=MemoryLimit("/a", 60 * MIB, None), rss=MIB),
    }
    for code, now in codes.items():
        [finding] = findings([row(now)], size)
        assert finding.code == code
        assert finding.summary.startswith("7 (app.Main) ")
        assert finding.fix
    calm = seen(gc_ms=100, cpu=CpuLimit("/a", 2, 100, 1, 1), memory=MemoryLimit("/a", 1 << 30, 1), rss=MIB)
    assert findings([row(calm)], size) == []
