"""The verdicts on what a JVM's threads use of the CPUs, and those that healthy JVMs must not get."""

from __future__ import annotations

import pytest
from cpuprofiles import profile

from opskit.analysis.jpmp.judge import Weighing, judge
from opskit.analysis.jpmp.load import cpu_use, cpu_waits, percents, vm_thread_share
from opskit.collect.jpmp.collect import Facts, Sampled, Schedule
from opskit.collect.jpmp.load import Load
from opskit.jvm.dumps.thread_dump import ThreadDump
from opskit.proc.cgroup.limits import CpuLimit

NAMES = {1: "VM Thread", 2: "GC Thread#0", 3: "G1 Conc#0", 4: "main", 5: "GC Thread"}


def quota(throttled):
    """Half a CPU, used up in so many of 50 periods."""
    return (CpuLimit("/pod", 0.5, 50, throttled, 1.0),)


def load(used_ms, waited_ms=None, **changes):
    """A run of 5 s on two CPUs that are 50 % idle, with G1 and 20 pauses of 0.2 s in all."""
    begun = Load(5.0, sum(used_ms.values()) / 1000, used_ms, waited_ms or {}, NAMES, "G1", 20, 0.2, None, 2, 0.5, ())
    return begun._replace(**changes)


def run(measured, samples=5):
    live = Sampled(7, 42, "Main", Schedule(samples))
    live.dumps, live.load = [ThreadDump("HotSpot", ())] * samples, measured
    return live


def codes(live):
    return [finding.code for finding in judge(Facts(live.dumps, live=live), Weighing()).findings]


def test_the_vm_thread_collects_no_longer_than_the_pauses():
    """What else it does, and a thread of the application with a similar name, is not garbage collection."""
    use = cpu_use(load({1: 900, 2: 1000, 3: 500, 4: 600, 5: 700}))
    assert use.collecting_s == pytest.approx(0.2 + 1.0 + 0.5)
    assert percents(load({2: 1000, 4: 3000})).collecting == pytest.approx(25)
    assert percents(None) == (None, None)


@pytest.mark.parametrize(
    ("used_ms", "changes", "found"),
    [
        ({2: 6000, 4: 1000}, {}, True),
        ({1: 4500, 4: 500}, {"collector": "Serial", "pause_s": 4.6}, True),
        ({2: 1700, 4: 300}, {"pauses": None, "pause_s": None, "collector": "Shenandoah"}, False),  # a third of a CPU
        ({2: 3000, 4: 3500}, {}, False),  # less than half of it
        ({2: 6000, 4: 1000}, {"pauses": 4}, False),  # one System.gc() in a quiet JVM
        ({2: 6000, 4: 1000}, {"elapsed_s": 0.9}, False),
    ],
)
def test_collections(used_ms, changes, found):
    """Most of the CPU time, half a CPU, several pauses, a second."""
    assert codes(run(load(used_ms, **changes))) == ["jvm-gc-cpu"] * found
    assert codes(run(load(used_ms, **changes), samples=2)) == []


def test_collections_that_a_quota_slows_down():
    """They want more than half a CPU, and get less."""
    assert "jvm-gc-cpu" in codes(run(load({2: 1500, 4: 300}, {2: 3000}, quotas=quota(45))))


@pytest.mark.parametrize(
    ("waited_ms", "changes", "said", "found"),
    [
        (92_000, {"idle_share": 0.02}, "20.0 of its threads want to run at a time, on 2 CPUs", True),
        (40_000, {"idle_share": 0.02}, "9.6 of its threads want to run at a time, on 2 CPUs", True),
        (12_000, {"idle_share": 0.02}, "want to run at a time, on 2 CPUs", False),
        (30_000, {"idle_share": 0.3}, "in bursts: 30 % of its 2 CPUs is idle", False),
        (30_000, {"idle_share": None}, "whether a CPU was free is unknown", False),
        (8_000, {"quotas": quota(30)}, "the CPU quota of /pod ran out in 60 % of the periods", False),
        (1_000, {"idle_share": 0.0}, None, False),
        (0, {"idle_share": 0.0}, None, False),
    ],
)
def test_waits_for_a_cpu(waited_ms, changes, said, found):
    """A shortage is a finding; other waits are a sentence; little is nothing."""
    live = run(load({4: 8000}, {4: waited_ms}, **changes))
    assert [code for code in codes(live) if code != "cpu-throttled"] == ["jvm-cpu-wait"] * found
    assert ("cpu-throttled" in codes(live)) == ("quotas" in changes)
    waits = cpu_waits(live.load, live.pid)
    assert (waits is None) == (said is None)
    assert waits is None or said in waits.summary


@pytest.mark.parametrize(("waited_ms", "found"), [(7_000, False), (60_000, True)])
def test_a_machine_on_which_others_use_the_cpus(waited_ms, found):
    """Healthy servers there wait up to 72 % of the time."""
    live = run(load({4: 2800}, {4: waited_ms}, idle_share=0.05))
    assert codes(live) == ["jvm-cpu-wait"] * found
    assert cpu_waits(live.load, live.pid)[:2] == (cpu_waits(live.load, live.pid).summary, "opskit cswitch 7")
    assert "other processes use most of its 2 CPUs" in cpu_waits(live.load, live.pid).summary


def test_a_process_without_a_jvm():
    """No thread of it is a garbage collector; the closer look is the same."""
    measured = load({2: 8000}, {2: 8000}, quotas=quota(30))
    for is_jvm, expected in ((True, {"jvm-gc-cpu", "cpu-throttled"}), (False, {"cpu-throttled"})):
        found = judge(Facts(cpu=profile({}, {}), load=measured, is_jvm=is_jvm), Weighing(by="cpu_ms")).findings
        assert {finding.code for finding in found} == expected
        assert [finding.next for finding in found][-1] == "opskit cswitch 4711"


def test_unknown_is_not_zero():
    """Without schedstat the waits are unknown; without hsperfdata, whether the VM thread collects."""
    unknown = load({1: 4500, 4: 500}, collector=None, pauses=None, pause_s=None)
    assert cpu_use(unknown).wait_share is None
    assert cpu_waits(unknown, 7) is None
    assert percents(unknown) == (None, None)
    assert vm_thread_share(unknown) == pytest.approx(0.9)
    assert vm_thread_share(load({1: 4500, 4: 500})) is None
    assert codes(run(None)) == []
