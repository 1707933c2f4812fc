"""CPU profiles: samples share the CPU time of their thread; methods, their intervals, what is ranked."""

from __future__ import annotations

import re

import pytest
from cpuprofiles import COMPILE, GET, GET_COLD, SEARCH, SPIN, java, profile, shop, stack
from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.jpmp.cpu_samples import (
    NOT_SAMPLED,
    Share,
    certain,
    explained_ms,
    full_name,
    methods,
    ranked,
    share,
    weigh,
    written_name,
)
from opskit.analysis.jpmp.judge import Weighing, judge
from opskit.analysis.jpmp.stacks import Naming, Selection
from opskit.collect.cpu_profile import StackKey
from opskit.collect.jpmp.collect import Facts
from opskit.jvm.profiles import WeightedStack
from opskit.proc.unwind.cursor import Frame

A, B = stack(java("a.A.run")), stack(java("b.B.run"))


def by_leaf(stacks):
    found = {}
    for each in stacks:
        found[each.frames[0]] = found.get(each.frames[0], 0.0) + each.cpu_ms
    return {name: round(ms, 3) for name, ms in found.items()}


def test_samples_share_the_cpu_time_of_their_thread():
    """A thread with few samples and much CPU time counts for what the kernel says, not for its samples."""
    taken = profile({StackKey(1, None, A): 30, StackKey(1, None, B): 10, StackKey(2, None, B): 10},
                    {1: ("a", 400.0, 0.0), 2: ("b", 700.0, 0.0)})  # fmt: skip
    found = weigh(taken, Naming())
    assert by_leaf(found) == {"a.A.run": 300.0, "b.B.run": 800.0}
    assert {each.frames[0]: (each.samples, each.threads) for each in found} == {"a.A.run": (30, 1), "b.B.run": (20, 2)}


def test_a_thread_without_a_reading_counts_by_its_samples():
    """It ended during the run: each sample stands for 1/hz seconds. A reading of 0 ms explains no sample either."""
    taken = profile({StackKey(1, None, A): 30, StackKey(2, None, B): 5}, {1: ("a", None, None), 2: ("b", 0.0, 0.0)})
    assert by_leaf(weigh(taken, Naming())) == {"a.A.run": 300.0, "b.B.run": 50.0}
    assert by_leaf(weigh(profile({StackKey(9, None, A): 1}, {}), Naming())) == {"a.A.run": 10.0}


def test_cpu_time_without_a_sample_has_a_row():
    """Threads of the VM by name, others as not sampled, and what ended threads used; rounding of the ticks has none."""
    threads = {1: ("a", 100.0, 0.0), 2: ("GC Thread#3", 40.0, 0.0), 3: ("main", 12.0, 0.0), 4: ("idle", 0.0, 0.0)}
    taken = profile({StackKey(1, None, A): 10}, threads, cpu_ms=252.0)
    assert by_leaf(weigh(taken, Naming())) == {"a.A.run": 100.0, "[GC Thread]": 40.0, NOT_SAMPLED: 112.0}
    rooted = {each.frames: round(each.cpu_ms) for each in weigh(taken, Naming(), "pool") if not each.samples}
    assert rooted == {
        ("[GC Thread]", "GC Thread#*"): 40, (NOT_SAMPLED, "main"): 12, (NOT_SAMPLED, "threads that have ended"): 100,
    }  # fmt: skip
    assert NOT_SAMPLED not in by_leaf(
        weigh(profile({StackKey(1, None, A): 10}, {1: ("a", 100.0, 0.0)}, cpu_ms=119.0), Naming())
    )


def test_threads_of_a_pool_explain_each_other():
    """A thread of a pool that no sample met does what the others do: their samples count for it, except where threads are shown."""
    threads = {
        1: ("worker-1", 300.0, 0.0),
        2: ("worker-2", 100.0, 0.0),
        3: ("worker-3", 20.0, 0.0),
        4: ("main", 5.0, 0.0),
    }
    taken = profile({StackKey(1, None, A): 30, StackKey(2, None, B): 10}, threads)
    for root in (None, "pool"):
        assert by_leaf(weigh(taken, Naming(), root)) == {"a.A.run": 315.0, "b.B.run": 105.0, NOT_SAMPLED: 5.0}
    assert by_leaf(weigh(taken, Naming(), "thread")) == {"a.A.run": 300.0, "b.B.run": 100.0, NOT_SAMPLED: 25.0}
    assert explained_ms(taken) == pytest.approx(420.0)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.booleans(), st.integers(1, 50)), max_size=8),
    st.lists(st.floats(0.5, 1e6), min_size=4, max_size=4),
)
def test_all_cpu_time_is_shown(samples, cpu_ms):
    """Whatever was sampled, the stacks add up to the CPU time of the process."""
    stacks = {StackKey(tid, None, A if first else B): count for tid, first, count in samples}
    taken = profile(stacks, {tid: (f"t-{tid}", cpu_ms[tid - 1], 0.0) for tid in range(1, 5)})
    for root in (None, "thread", "pool"):
        assert sum(each.cpu_ms for each in weigh(taken, Naming(), root)) == pytest.approx(taken.cpu_ms)


def test_names():
    """Short, full, with lines; symbols of native code are not touched, whatever they look like."""
    hidden = Frame("a.B$$Lambda/0x00007f1a.run", "compiled", None, None)
    assert written_name(hidden, Naming()) == "a.B$$Lambda.run"
    assert written_name(hidden, Naming(full=True, lines=True)) == "a.B$$Lambda/0x00007f1a.run"
    assert written_name(java("a.B.run", line=41), Naming(lines=True)) == "a.B.run(B.java:41)"
    assert written_name(java("a.B.run", line=None), Naming(lines=True)) == "a.B.run(B.java)"
    symbol = Frame("std::map<int, a/b>::find(int)", "native", None, None)
    assert written_name(symbol, Naming(lines=True)) == symbol.name
    assert [full_name(name) for name in ("C2 CompilerThre", "VM Periodic Tas", "C2 CompilerThr", "main")] == [
        "C2 CompilerThread", "VM Periodic Task Thread", "C2 CompilerThr", "main",
    ]  # fmt: skip


def test_kinds_stand_beside_the_frames():
    """One for each; of equal stacks the kind that most samples have; roots are labels."""
    found = {each.frames: each for each in weigh(shop(), Naming())}
    get = next(each for frames, each in found.items() if frames[0] == "java.util.HashMap.get")
    assert get.samples == 90
    assert get.kinds == tuple(frame.kind for frame in GET)
    compiler = next(each for frames, each in found.items() if frames[-1] == "[C2 CompilerThread]")
    assert compiler.kinds == ("native", "native", "native", "native", "label")
    assert all(len(each.kinds) == len(each.frames) for each in found.values())


def test_a_virtual_thread_stands_above_its_carrier():
    """--by-thread: its name, then the carrier's; --by-pool pools both. Without them the carrier is the container."""
    spins = [each for each in weigh(shop(), Naming(), "thread") if each.frames[0].endswith("nanoTime")]
    assert sorted(each.frames[-2:] for each in spins) == [
        ("handler-7", "ForkJoinPool-1-worker-2"), ("virtual thread #41", "ForkJoinPool-1-worker-1"),
    ]  # fmt: skip
    pooled = {each.frames[-2:] for each in weigh(shop(), Naming(), "pool") if each.frames[0].endswith("nanoTime")}
    assert pooled == {("handler-*", "ForkJoinPool-1-worker-*"), ("virtual thread #*", "ForkJoinPool-1-worker-*")}
    [one] = [each for each in weigh(shop(), Naming()) if each.frames[0].endswith("nanoTime")]
    assert (dict(one.pools), one.container) == ({"virtual thread #*": 1, "handler-*": 1}, "ForkJoinPool-1-worker-*")


def test_an_empty_stack_is_unknown():
    """A sample without any frame is shown, not dropped."""
    [one] = weigh(profile({StackKey(1, None, ()): 3}, {1: ("a", 30.0, 0.0)}), Naming())
    assert (one.frames, one.kinds, one.cpu_ms) == (("[unknown]",), ("label",), 30.0)


def test_methods_count_once_in_a_stack():
    """Self time is the leaf's; a recursive method has its time once; names of threads are no methods."""
    recursive = stack(java("a.A.run"), java("a.A.run"), java("b.B.get"))
    taken = profile({StackKey(1, None, recursive): 10, StackKey(1, None, A): 30}, {1: ("t-1", 400.0, 0.0)})
    found = {method.name: method for method in methods(weigh(taken, Naming(), "thread"))}
    assert (found["a.A.run"].self_ms, found["a.A.run"].total_ms) == (300.0, 400.0)
    assert (found["a.A.run"].self_samples, found["a.A.run"].total_samples) == (30, 40)
    assert (found["b.B.get"].self_ms, found["b.B.get"].kind) == (100.0, "compiled")
    assert dict(found["a.A.run"].self_pools) == {"t-*": 1}
    assert "t-1" not in found


@pytest.mark.parametrize(("part", "samples", "low", "high"), [
    (0.5, 100, 0.404, 0.596), (0.1, 1000, 0.083, 0.120), (1.0, 10, 0.722, 1.0), (0.0, 10, 0.0, 0.278),
])  # fmt: skip
def test_the_interval_is_wilsons(part, samples, low, high):
    """Values of the published formula; never outside of 0 to 1, and around the part."""
    found = share(part * 50, 50, samples)
    assert (found.low, found.high) == (pytest.approx(low, abs=0.001), pytest.approx(high, abs=0.001))


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.integers(0, 10**7))
def test_an_interval_always_contains_its_share(part, whole, samples):
    """Also of nothing, and of more than all."""
    found = share(part, whole, samples)
    assert 0 <= found.low <= found.part <= found.high <= 1


def test_few_samples_are_not_ranked():
    """Under 10: they are counted, and never named."""
    found = methods(weigh(shop(), Naming()))
    best, rest = ranked(found, "self")
    assert [method.name for method in best][:2] == ["org.h2.mvstore.Page.search", "java.util.HashMap.get"]
    assert all(method.self_samples >= 10 for method in best)
    assert {method.name.rpartition(".")[0] for method in rest} == {
        f"com.example.shop.Rare{number}" for number in range(20)
    }
    totals, _ = ranked(found, "total")
    assert totals[0].total_ms >= totals[-1].total_ms
    assert "com.example.shop.Dao.find" in [method.name for method in totals]


def test_certain_are_those_whose_intervals_are_apart():
    """From the first row on."""
    apart, near = Share(0.5, 0.4, 0.6), Share(0.3, 0.25, 0.35)
    assert certain([apart, near, Share(0.29, 0.24, 0.34)]) == 1
    assert certain([apart, near]) == 2
    assert certain([near, Share(0.29, 0.24, 0.34)]) == 0
    assert certain([]) == 0


def test_what_is_explained():
    """The CPU time of threads with samples that have frames; unknown where that of the process is."""
    taken = profile({StackKey(1, None, A): 9, StackKey(1, None, ()): 1}, {1: ("a", 100.0, 0.0), 2: ("b", 25.0, 0.0)})
    assert explained_ms(taken) == pytest.approx(90.0)
    assert explained_ms(taken._replace(cpu_ms=None)) is None
    assert explained_ms(taken._replace(cpu_ms=50.0)) == 50.0


def test_judging_selects_stacks_and_their_methods():
    """--include and --depth: the methods are those of the selected stacks, whole."""
    how = Weighing(selection=Selection(include=(re.compile("HashMap"),), depth=1), by="cpu_ms")
    judged = judge(Facts(cpu=shop(), sampler="unwind"), how)
    assert [(each.frames, each.kinds) for each in judged.selected] == [(("java.util.HashMap.get",), ("inlined",))]
    assert "java.lang.Thread.run" in [method.name for method in judged.methods]
    assert judged.methods[0].name == "java.util.HashMap.get"
    assert judged.cpu_ms == pytest.approx(5954.0)


@pytest.mark.parametrize("before", [
    Facts(stacks=[WeightedStack(("a.A.run", "java.lang.Thread.run"), samples=7)]),
    Facts(stacks=[WeightedStack(("a.A.run", "java.lang.Thread.run"), samples=1, cpu_ms=7.0)]),
])  # fmt: skip
def test_a_profile_is_compared_with_collapsed_stacks_or_json(before):
    """What the file's counts are of does not matter: shares are compared."""
    judged = judge(Facts(cpu=shop(), sampler="unwind", before=before), Weighing(by="cpu_ms"))
    assert [each.cpu_ms for each in judged.before] == [7.0]


def test_the_fixture_has_what_it_says():
    """Kinds that differ between equal stacks, inlined frames, a stack of a thread of the VM."""
    assert {frame.name for frame in GET} == {frame.name for frame in GET_COLD}
    assert {frame.kind for frame in GET} != {frame.kind for frame in GET_COLD}
    assert SEARCH[0].name.endswith("search")
    assert SPIN[0].name.endswith("nanoTime")
    assert {frame.kind for frame in COMPILE} == {"native"}
