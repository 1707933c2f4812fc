"""Time off the CPUs: that of each thread by the kernel's counters, shared over its samples."""

from __future__ import annotations

import pytest

from opskit.analysis.jpmp.judge import Weighing, judge
from opskit.analysis.jpmp.off_cpu import off_cpu
from opskit.analysis.jpmp.stacks import NOT_SEEN_WAITING, Naming, OffCpu, weigh
from opskit.collect.jpmp.collect import Facts, Sampled, Schedule
from opskit.collect.jpmp.load import Load
from opskit.jvm.dumps.thread_dump import Stack, Thread, ThreadDump

RUN = Stack(("a.Burn.run(Burn.java:1)",), "RUNNABLE")
SLEEP = Stack(("java.lang.Thread.sleep(Native Method)", "a.Burn.run(Burn.java:3)"), "TIMED_WAITING")
NONE = Stack((), None)
CARRIER = Stack(("jdk.internal.vm.Continuation.run(C.java:5)",), None, "carrier")
PINNED = Stack(("java.net.SocketInputStream.socketRead0(Native Method)", "a.Server.run(S.java:4)"), None, "mounted")


def dump(*stacks):
    """A thread for each stack, with the native ids from 1 up."""
    return ThreadDump("HotSpot", [Thread(stack, f"t-{at}", at, at) for at, stack in enumerate(stacks, 1) if stack])


def sampled(*dumps, used_ms, waited_ms):
    live = Sampled(7, 42, "Main", Schedule(len(dumps)))
    live.dumps, live.elapsed_s = [*dumps], 10.0
    live.cpu_before, live.cpu_after = dict.fromkeys(used_ms, 0.0), used_ms
    live.load = Load(10.0, None, used_ms, waited_ms, {}, None, None, None, None, 2, 0.5, None)
    return live


def test_what_is_left_of_the_run():
    """Elapsed minus CPU minus run queue, for the part of the run in which the thread lived; VM threads have none."""
    live = sampled(
        dump(RUN, SLEEP, NONE), dump(RUN, None, NONE), used_ms={1: 6000.0, 2: 100.0, 3: 50.0}, waited_ms={1: 1000.0}
    )
    assert off_cpu(live, {1: 6000.0, 2: 100.0}) == {1: OffCpu(3000.0, 1000.0), 2: OffCpu(4900.0, 0.0)}
    assert off_cpu(live, {1: 12_000.0})[1] == OffCpu(0.0, 1000.0)


def test_waits_are_shared_by_what_the_samples_show():
    """Blocked time goes to samples that wait, time in the run queue to those that run; none seen: a row of its own."""
    dumps = [dump(RUN, RUN), dump(SLEEP, RUN), dump(SLEEP, RUN)]
    found = weigh(dumps, Naming(), off_cpu={1: OffCpu(3000.0, 500.0), 2: OffCpu(80.0, 20.0)})
    assert {each.frames[0]: each.off_cpu_ms for each in found} == {
        "a.Burn.run": 520.0, "java.lang.Thread.sleep": 3000.0, NOT_SEEN_WAITING: 80.0,
    }  # fmt: skip


def test_a_carriers_time_is_that_of_its_virtual_thread():
    """Both have its native id in a dump: its time counts once, and for the stack of the virtual thread alone."""
    both = ThreadDump("HotSpot", [Thread(CARRIER, "carrier", 1, 30), Thread(PINNED, "", 1, 41)])
    live = sampled(both, both, used_ms={1: 4000.0}, waited_ms={1: 0.0})
    off = off_cpu(live, {1: 4000.0})
    assert off == {1: OffCpu(6000.0, 0.0)}
    found = {each.frames[0]: each.off_cpu_ms for each in weigh(live.dumps, Naming(), off_cpu=off)}
    assert found == {"java.net.SocketInputStream.socketRead0": 6000.0, "jdk.internal.vm.Continuation.run": 0.0}


def test_all_of_it_is_shown():
    """The judged stacks add up to it, and their order is theirs."""
    live = sampled(dump(RUN, SLEEP), dump(SLEEP, SLEEP), used_ms={1: 4000.0, 2: 10.0}, waited_ms={1: 500.0, 2: 0.0})
    judged = judge(Facts(live.dumps, live=live, sampler="dumps"), Weighing(by="off_cpu_ms"))
    assert sum(each.off_cpu_ms for each in judged.stacks) == pytest.approx(20_000 - 4010)
