"""What the counters of each collector and release say about heap, collections and stops."""

from __future__ import annotations

from pathlib import Path

import hsperf
import pytest

from opskit.jvm.perfdata.counters import GcWork, collector, gc_work, heap, running_pause_s
from opskit.jvm.perfdata.hsperfdata import parse_hsperfdata
from opskit.jvm.perfdata.stop_clock import stopped_s

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "hsperfdata"
MIB = 1 << 20
COLLECTORS = {
    "serial": "Serial", "parallel": "Parallel", "g1": "G1", "cms": "CMS", "shenandoah": "Shenandoah", "genshen": "Shenandoah",
    "z": "ZGC", "genz": "ZGC-generational", "epsilon": "Epsilon",
}  # fmt: skip


def load(name):
    return parse_hsperfdata((FIXTURES / name).read_bytes(), name)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("jdk*")), ids=lambda path: path.name)
def test_every_collector_is_named_and_its_heap_is_as_it_was_started(path):
    """All were started with -Xms32m -Xmx64m; some round up the initial size, none the limit."""
    perf = load(path.name)
    _, _, name = path.name.partition("-")
    wanted = "ZGC-generational" if path.name == "jdk25-z" else COLLECTORS[name]
    assert collector(perf) == wanted
    used, committed, largest = heap(perf)
    assert largest == 64 * MIB
    assert 0 < used <= committed <= largest
    assert committed >= 32 * MIB
    gc = gc_work(perf)
    stops = perf.number("sun.rt.safepoints")
    if name in ("shenandoah", "genshen") or path.name == "jdk11-z":
        assert gc == GcWork(None, None, None)  # it has no counter of pauses
    elif name == "epsilon":
        assert gc == GcWork(0, 0, 0.0)
        assert stops == 0
    else:
        assert gc.pauses > 50
        assert gc.pauses <= stops + 1
        assert 0 < gc.pause_s < stopped_s(perf) < 5
        assert gc.collections == (None if wanted.startswith("ZGC") else gc.pauses)


def test_before_13_the_time_at_safepoints_has_the_way_there_in_it():
    counters = {
        "sun.os.hrt.frequency": (1000, hsperf.HERTZ),
        "sun.rt.safepointTime": (5000, hsperf.TICKS), "sun.rt.safepointSyncTime": (1000, hsperf.TICKS),
    }  # fmt: skip
    for version, seconds in (("1.8", 5.0), ("11", 5.0), ("13", 6.0), ("25", 6.0), ("", 5.0)):
        perf = parse_hsperfdata(
            hsperf.build({**counters, "java.property.java.vm.specification.version": version}), "built"
        )
        assert stopped_s(perf) == seconds


def test_jdk_7_and_8():
    """The permanent generation is not heap; G1 has two collectors; CMS's second one counts its pauses."""
    perf = parse_hsperfdata(
        hsperf.build({
            "sun.gc.policy.name": "ParNew:CMS", "sun.os.hrt.frequency": (1000, hsperf.HERTZ),
            "sun.gc.generation.0.capacity": 10 * MIB, "sun.gc.generation.0.maxCapacity": 20 * MIB, "sun.gc.generation.0.spaces": 3,
            "sun.gc.generation.0.space.0.used": MIB, "sun.gc.generation.0.space.1.used": 5, "sun.gc.generation.0.space.2.used": 6,
            "sun.gc.generation.1.capacity": 30 * MIB, "sun.gc.generation.1.maxCapacity": 80 * MIB, "sun.gc.generation.1.spaces": 1,
            "sun.gc.generation.1.space.0.used": 2 * MIB,
            "sun.gc.generation.2.capacity": 50 * MIB, "sun.gc.generation.2.maxCapacity": 50 * MIB, "sun.gc.generation.2.spaces": 1,
            "sun.gc.generation.2.space.0.used": 40 * MIB,
            "sun.gc.collector.0.invocations": 9, "sun.gc.collector.0.time": (900, hsperf.TICKS),
            "sun.gc.collector.1.invocations": 2, "sun.gc.collector.1.time": (100, hsperf.TICKS),
        }), "built")  # fmt: skip
    assert collector(perf) == "CMS"
    assert heap(perf) == (3 * MIB + 11, 40 * MIB, 100 * MIB)
    assert gc_work(perf) == GcWork(11, 11, 1.0)


def test_what_is_not_counted_is_unknown():
    perf = parse_hsperfdata(hsperf.build({}), "built")
    assert heap(perf) is None
    assert collector(perf) is None
    assert gc_work(perf) == GcWork(None, None, None)
    assert stopped_s(perf) is None


def test_a_lying_file_is_no_reason_to_count_for_ever():
    perf = parse_hsperfdata(
        hsperf.build({"sun.gc.generation.0.capacity": 4096, "sun.gc.generation.0.spaces": 2**62}), "built"
    )
    assert heap(perf) == (None, 4096, 0)


@pytest.mark.parametrize(
    ("policy", "collections", "used"),
    [("GarbageFirst", 0, None), ("GarbageFirst", 1, 4096), ("Copy:MSC", 0, 4096)],
)
def test_the_use_is_unknown_before_the_first_collection(policy, collections, used):
    """G1 writes it at collections only; up to JDK 24 Serial's is sampled."""
    counters = {
        "sun.gc.policy.name": policy, "sun.gc.generation.0.spaces": 1, "sun.gc.generation.0.capacity": 8 * MIB,
        "sun.gc.generation.0.maxCapacity": 64 * MIB, "sun.gc.generation.0.space.0.used": 4096,
        "sun.gc.collector.0.invocations": collections, "sun.gc.collector.1.invocations": 0,
    }  # fmt: skip
    assert heap(parse_hsperfdata(hsperf.build(counters), "built")).used_bytes == used


@pytest.mark.parametrize(
    "name",
    ["generation.0.capacity", "generation.0.maxCapacity", "generation.0.space.0.used"],
)
def test_a_heap_with_a_negative_size_is_unknown(name):
    """Only a damaged or hostile file has one."""
    counters = {
        "sun.gc.policy.name": "Copy:MSC", "sun.gc.generation.0.spaces": 1, "sun.gc.generation.0.capacity": 8 * MIB,
        "sun.gc.generation.0.maxCapacity": 64 * MIB, "sun.gc.generation.0.space.0.used": 4096,
    }  # fmt: skip
    assert heap(parse_hsperfdata(hsperf.build(counters), "built")) == (4096, 8 * MIB, 64 * MIB)
    assert heap(parse_hsperfdata(hsperf.build({**counters, f"sun.gc.{name}": -1}), "built")) is None


def test_the_pause_that_is_going_on():
    """Entered after it was last left: its time so far, by the wall clock. Counted at its end, it would seem longer than the window."""
    counters = {
        "sun.os.hrt.frequency": (1000, hsperf.HERTZ), "sun.gc.policy.name": "Copy:MSC",
        "sun.rt.createVmBeginTime": 1_000_000, "sun.gc.collector.1.lastEntryTime": (9000, hsperf.TICKS),
        "sun.gc.collector.1.lastExitTime": (4000, hsperf.TICKS),
    }  # fmt: skip
    assert running_pause_s(parse_hsperfdata(hsperf.build(counters), "built"), 1012.5) == pytest.approx(3.5)
    counters["sun.gc.collector.1.lastExitTime"] = (9500, hsperf.TICKS)
    assert running_pause_s(parse_hsperfdata(hsperf.build(counters), "built"), 1012.5) == 0


@pytest.mark.parametrize("name", ["invocations", "time"])
def test_negative_pauses_are_unknown(name):
    counters = {
        "sun.os.hrt.frequency": (1000, hsperf.HERTZ), "sun.gc.policy.name": "Copy:MSC",
        "sun.gc.collector.0.invocations": 4, "sun.gc.collector.0.time": (9, hsperf.TICKS),
    }  # fmt: skip
    assert gc_work(parse_hsperfdata(hsperf.build(counters), "built")).pauses == 4
    counters[f"sun.gc.collector.0.{name}"] = -4 if name == "invocations" else (-9, hsperf.TICKS)
    assert gc_work(parse_hsperfdata(hsperf.build(counters), "built")) == (None, None, None)
