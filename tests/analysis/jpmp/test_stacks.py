"""Stacks and what they weigh: samples, CPU, selection, order."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.jpmp.stacks import (
    NOT_IN_ANY_DUMP,
    NOT_SEEN_RUNNING,
    Naming,
    Selection,
    count,
    cpu_over_run,
    hottest_first,
    lines_by_weight,
    merge,
    select,
    thread_count,
    weigh,
)
from opskit.jvm.dumps.thread_dump import Stack, Thread, ThreadDump, Waits
from opskit.jvm.profiles import WeightedStack

RUN = Stack(("a.Burn.run(Burn.java:1)", "java.lang.Thread.run(Thread.java:2)"), "RUNNABLE")
SLEEP = Stack(("java.lang.Thread.sleep(Native Method)", "a.Burn.run(Burn.java:3)"), "TIMED_WAITING")
READ = Stack(("java.net.SocketInputStream.socketRead0(Native Method)", "a.Server.run(S.java:4)"), "RUNNABLE")
CARRIER = Stack(("jdk.internal.vm.Continuation.run(C.java:5)",), None, "carrier")
MOUNTED = Stack(("a.Spin.run(Spin.java:6)",), None, "mounted")
NONE = Stack((), None)


def thread(stack, name="t", native_id=1, java_id=1, cpu_ms=None):
    return Thread(stack, name, native_id, java_id, cpu_ms=cpu_ms)


def dump(*threads, deadlocks=()):
    return ThreadDump("HotSpot", threads, deadlocks=deadlocks)


def cpu_of(stacks):
    return {stack.frames[0] if stack.frames else "": round(stack.cpu_ms, 6) for stack in stacks if stack.cpu_ms}


def test_counting_and_weighing_give_the_same_samples():
    """The fast way and the thorough one."""
    dumps = [dump(thread(RUN), thread(SLEEP, native_id=2), thread(NONE, native_id=3)), dump(thread(RUN))]
    fast = {stack.frames: stack.samples for stack in count(dumps, Naming())}
    assert fast == {stack.frames: stack.samples for stack in weigh(dumps, Naming())}
    assert fast == {("a.Burn.run", "java.lang.Thread.run"): 2, ("java.lang.Thread.sleep", "a.Burn.run"): 1, (): 1}


def test_cpu_goes_to_the_samples_that_ran():
    """A thread's CPU is split over its RUNNABLE samples outside of waiting natives, never over sleeps and reads."""
    dumps = [dump(thread(SLEEP)), dump(thread(RUN)), dump(thread(READ)), dump(thread(RUN))]
    assert cpu_of(weigh(dumps, Naming(), cpu_ms={1: 80.0}, on_cpu=True)) == {"a.Burn.run": 80.0}


def test_cpu_that_no_sample_explains_has_a_stack_of_its_own():
    """Never seen running; not in any dump; a thread of the VM."""
    dumps = [dump(thread(SLEEP), thread(NONE, "GC Thread#3", 7), thread(NONE, "GC Thread#4", 8))]
    found = cpu_of(weigh(dumps, Naming(), cpu_ms={1: 5.0, 7: 3.0, 8: 4.0, 9: 2.0}, natives={9: "java"}, on_cpu=True))
    assert found == {NOT_SEEN_RUNNING: 5.0, "[GC Thread]": 7.0, NOT_IN_ANY_DUMP: 2.0}
    assert cpu_of(weigh(dumps, Naming(), cpu_ms={1: 5.0})) == {}


def test_parks_and_selects_take_cpu_that_nothing_else_explains():
    """With --on-cpu only: work between two waits may never be seen. A sleep explains nothing."""
    park = Stack(("jdk.internal.misc.Unsafe.park(Native Method)", "a.Pool.take(P.java:1)"), "WAITING")
    poll = Stack(("sun.nio.ch.EPoll.wait(Native Method)", "a.Loop.run(L.java:1)"), "RUNNABLE")
    dumps = [
        dump(thread(park), thread(poll, native_id=2), thread(park, native_id=3)),
        dump(thread(SLEEP), thread(RUN, native_id=3)),
    ]
    cpu = {1: 4.0, 2: 6.0, 3: 9.0}
    assert cpu_of(weigh(dumps, Naming(), cpu_ms=cpu, on_cpu=True)) == {
        "jdk.internal.misc.Unsafe.park": 4.0, "sun.nio.ch.EPoll.wait": 6.0, "a.Burn.run": 9.0,
    }  # fmt: skip
    waiting = weigh(dumps, Naming(), cpu_ms=cpu)
    assert cpu_of(waiting) == {"a.Burn.run": 9.0}
    assert next(stack for stack in waiting if stack.frames[0] == "sun.nio.ch.EPoll.wait").idle


def test_cpu_of_a_thread_that_does_nothing_but_read_a_stream_is_the_readings():
    """A file of the page cache's, or a terminal: the reading is the only explanation of its CPU time. Then it is not idle."""
    stream = Stack(("java.io.FileInputStream.readBytes(Native Method)", "a.Copy.run(C.java:4)"), "RUNNABLE")
    [found] = weigh([dump(thread(stream)), dump(thread(stream))], Naming(), cpu_ms={1: 90.0}, on_cpu=True)
    assert (found.cpu_ms, found.idle) == (90.0, False)
    [waits] = weigh([dump(thread(stream)), dump(thread(stream))], Naming(), cpu_ms={1: 0.0}, on_cpu=True)
    assert waits.idle
    dumps = [dump(thread(stream)), dump(thread(stream)), dump(thread(RUN))]
    assert cpu_of(weigh(dumps, Naming(), cpu_ms={1: 90.0}, on_cpu=True)) == {"a.Burn.run": 90.0}


def test_threads_without_names_are_counted_by_their_ids():
    """As `jstack -F` before JDK 9 has them; without any identity their number is unknown."""
    nameless = [thread(RUN, None, native_id, None) for native_id in (1, 2, 2)]
    assert thread_count([dump(*nameless)]) == 2
    assert thread_count([dump(thread(RUN, None, None, None))]) is None


def test_a_carriers_cpu_goes_to_the_mounted_thread():
    """JDK 25 shows both; on 21 only the carrier's stack is there."""
    both = [dump(thread(CARRIER, "w-1", 5), thread(MOUNTED, "w-1", 5, 22))]
    assert cpu_of(weigh(both, Naming(), cpu_ms={5: 9.0}, on_cpu=True)) == {"a.Spin.run": 9.0}
    alone = [dump(thread(CARRIER, "w-1", 5))]
    assert cpu_of(weigh(alone, Naming(), cpu_ms={5: 9.0}, on_cpu=True)) == {"jdk.internal.vm.Continuation.run": 9.0}


@given(
    st.lists(st.lists(st.tuples(st.integers(1, 5), st.sampled_from([RUN, SLEEP, READ, NONE])), max_size=5), max_size=5),
    st.dictionaries(st.integers(1, 7), st.floats(0, 1000), max_size=7),
)
def test_no_cpu_is_lost_or_made(samples, cpu):
    """The stacks of --on-cpu add up to the whole CPU time."""
    dumps = [dump(*(thread(stack, f"t{n}", n) for n, stack in threads)) for threads in samples]
    found = sum(stack.cpu_ms for stack in weigh(dumps, Naming(), cpu_ms=cpu, on_cpu=True))
    assert found == pytest.approx(sum(cpu.values()))


def test_cpu_of_saved_dumps_is_from_the_first_to_the_last():
    """A thread born meanwhile began with 0; a CPU time that decreased is another thread's; one dump gives no CPU time."""
    dumps = [
        dump(thread(RUN, native_id=1, cpu_ms=10.0), thread(RUN, native_id=2, cpu_ms=50.0)),
        dump(
            thread(RUN, native_id=1, cpu_ms=30.0),
            thread(RUN, native_id=2, cpu_ms=1.0),
            thread(RUN, native_id=3, cpu_ms=4.0),
        ),
    ]
    assert cpu_over_run(dumps) == {1: 20.0, 3: 4.0}
    assert cpu_over_run(dumps[:1]) is None
    assert cpu_over_run([dump(thread(RUN)), dump(thread(RUN))]) is None


def test_a_thread_that_a_cut_off_dump_lacks_may_be_old():
    """Its CPU time counts from its first reading, not from its start."""
    torn = dump(thread(RUN, native_id=1, cpu_ms=1.0))._replace(cut_off=True)
    whole = [
        dump(thread(RUN, native_id=1, cpu_ms=cpu), thread(RUN, native_id=2, cpu_ms=9e6 + cpu)) for cpu in (3.0, 7.0)
    ]
    assert cpu_over_run([torn, *whole]) == {1: 6.0, 2: 4.0}


def test_cpu_of_a_live_run_is_from_the_first_reading_to_the_last():
    """The kernel's readings around the dumps; of a thread that ended, what the last dump said."""
    dumps = [dump(thread(RUN, native_id=1, cpu_ms=12.0), thread(RUN, native_id=2, cpu_ms=8.0))]
    assert cpu_over_run(dumps, {1: 10.0, 2: 5.0, 4: 1.0}, {1: 15.0, 4: 2.0}) == {1: 5.0, 2: 3.0, 4: 1.0}


def test_roots():
    """--by-thread and --by-pool put the name below everything."""
    dumps = [dump(thread(RUN, "pool-1-thread-1", 1), thread(RUN, "pool-1-thread-2", 2))]
    by_thread = weigh(dumps, Naming(), root="thread")
    assert sorted(stack.frames[-1] for stack in by_thread) == ["pool-1-thread-1", "pool-1-thread-2"]
    [by_pool] = weigh(dumps, Naming(), root="pool")
    assert (by_pool.frames[-1], by_pool.samples, by_pool.threads) == ("pool-1-thread-*", 2, 2)
    assert by_pool.pools == {"pool-1-thread-*": 2}


def test_the_deadlocked_are_marked_and_come_first():
    """The JVM reports them, and they wait in this dump."""
    blocked = Stack(("a.B.c(B.java:1)",), "BLOCKED")
    links = ((Waits("A", "a.Lock", "0x1", "B"), Waits("B", "a.Lock", "0x2", "A")),)
    dumps = [dump(thread(RUN, "A"), thread(RUN, "x", 3), thread(blocked, "B", 2), deadlocks=links)]
    ordered = hottest_first(weigh(dumps, Naming()))
    assert [stack.deadlocked for stack in ordered] == [True, False]
    assert ordered[0].frames == ("a.B.c",)


def stack(frames, samples=1, **more):
    return WeightedStack(tuple(frames.split(",")) if frames else (), samples=samples, **more)


def test_selection():
    """State, include, exclude, idle, depth."""
    stacks = [
        stack("java.util.HashMap.get,a.B.c,main", 3, state="RUNNABLE"),
        stack("java.util.HashMap.get,a.B.c,other", 4, state="RUNNABLE"),
        stack("x.Y.z", 5, state="BLOCKED"),
        stack("java.lang.Thread.sleep", 6, state="TIMED_WAITING", idle=True),
    ]

    def frames(**wanted):
        return [found.frames[0] + f"={found.samples}" for found in select(stacks, Selection(**wanted))]

    assert frames(states=frozenset({"BLOCKED"})) == ["x.Y.z=5"]
    assert frames(idle=False) == ["java.util.HashMap.get=3", "java.util.HashMap.get=4", "x.Y.z=5"]
    assert frames(include=(re.compile(r"^j\.util"),), depth=2) == ["java.util.HashMap.get=7"]
    assert frames(include=(re.compile("HashMap"),), exclude=(re.compile("other"),)) == ["java.util.HashMap.get=3"]


def test_lines_are_most_first_and_ties_by_bytes():
    """As sort -rn on uniq -c, with a rule for ties; stacks without frames or without weight are not lines."""
    stacks = [stack("b", 2), stack("ä", 2), stack("a", 2), stack("Z", 9), stack("", 5), stack("0", 0)]
    assert lines_by_weight(stacks, lambda each: each.frames[0]) == [
        (9, "Z"),
        (2, "a"),
        (2, "b"),
        (2, "ä"),
    ]


@given(st.lists(st.tuples(st.sampled_from(["a", "a,b", "c"]), st.integers(1, 9), st.sampled_from(["RUNNABLE", None]))))
def test_merging_keeps_the_sum(rows):
    """No sample is lost, whatever is merged."""
    stacks = [stack(frames, samples, state=state) for frames, samples, state in rows]
    merged = merge(stacks, lambda each: each.frames)
    assert sum(each.samples for each in merged) == sum(samples for _, samples, _ in rows)
    assert len({each.frames for each in merged}) == len(merged)
