"""The quick look at waits for a CPU: when it is a warning, a note, or nothing."""

from __future__ import annotations

import pytest
from cswitchfacts import BUSY_CPUS, IDLE_CPUS, host

from opskit.analysis.cswitch.quick import judge_quickly
from opskit.analysis.finding import HOST, Entity
from opskit.collect.cpu_use import CpuUse
from opskit.collect.cswitch.facts import CpuLoad, ProcessWaits, Thread
from opskit.collect.cswitch.quick import CgroupQuota, Owned, QuickFacts
from opskit.proc.process import Process

BOTH = frozenset({0, 1})
HALF_IDLE = (BUSY_CPUS[0], IDLE_CPUS[1])


def process(pid, running, waiting, command="job", ppid=1, **more):
    """A process with one thread."""
    thread = Thread(pid, command, running, waiting, 10.0, None, None, None, 0.0, BOTH, 0)._replace(**more)
    return ProcessWaits(Process(pid, command, 0, "root", ppid, 10 * pid, "R", 1), running, waiting, None, 1, thread)


HOGS = tuple(process(100 + number, 0.05, 0.95) for number in range(40))
SERVICE = process(7, 0.03, 0.9, "service")


def quick(*processes, quotas=(), sleeps=None, owned=None, **more):
    seen = host().facts._replace(processes=processes, cpus=BUSY_CPUS, runnable=41.0, pressure=0.98)._replace(**more)
    known = {
        each.process.pid: Owned(None, 5000 if each.process.command == "job" else each.process.pid) for each in processes
    }
    return QuickFacts(seen, quotas, len(quotas), {**known, **(owned or {})}, sleeps or {7: 0.9}, False)


def codes(found):
    return [(each.code, each.severity) for each in found]


CROWD = ("runnable-above-cpus", "note")
STARVED = [("jvm-cpu-wait", "warning"), ("runnable-above-cpus", "warning")]


def test_a_build_that_uses_all_cpus_is_a_note():
    """Its processes wait for each other: that is how a machine is used up."""
    [found] = judge_quickly(quick(*HOGS))
    assert (found.code, found.severity, found.entity, found.share) == (*CROWD, HOST, 0.98)
    assert found.summary == "41.0 tasks want to run on 2 CPUs; 100 (job) uses most"
    [inside] = judge_quickly(quick(*HOGS)._replace(sees_all=False))
    assert inside.summary == "41.0 tasks want to run on 2 CPUs of the host of this container"


def test_a_service_that_gets_next_to_nothing_beside_it_is_a_warning():
    """The crowd is the cause, above the process that waits."""
    found = judge_quickly(quick(*HOGS, SERVICE))
    assert codes(found) == STARVED
    assert found[0].entity == Entity("process", 7, 70)
    assert found[0].summary.startswith(
        "7 (service) waits 90 % of the time for a CPU: 41 runnable threads on 2 CPUs, 40 of"
    )


@pytest.mark.parametrize(
    ("waits", "more"),
    [
        (process(7, 0.2, 0.7, "service"), {}),  # a fair share
        (process(7, 0.02, 0.3, "service"), {}),  # a burst
        (process(7, 0.03, 0.9, "service", nice=5), {}),
        (process(7, 0.03, 0.9, "service", policy=3), {}),
        (process(7, 0.03, 0.9, "kworker", ppid=2), {}),
        (SERVICE, {"sleeps": {7: 0.01}}),  # it only computes
        (SERVICE, {"owned": {7: Owned(None, 5000)}}),  # of the build's session
        (process(7, 0.03, 0.9), {}),  # its program
        (process(7, 0.03, 0.6, "service", slices=50.0), {}),  # 12 ms each time
        (SERVICE, {"pressure": 0.3}),
        (SERVICE, {"cpus": HALF_IDLE}),
    ],
    ids=["fair share", "burst", "nice", "batch", "kernel", "computes", "session", "program", "often", "pressure", "idle"],
)  # fmt: skip
def test_waits_that_are_no_warning(waits, more):
    """Nothing but the note about the machine."""
    assert codes(judge_quickly(quick(*HOGS, waits, **more))) in ([CROWD], [])


def test_at_most_three_starved_processes_are_named():
    """The longest waits."""
    services = [process(number, 0.01, 0.9, f"s{number}") for number in range(11, 17)]
    found = judge_quickly(quick(*HOGS, *services, sleeps={each.process.pid: 1.0 for each in services}))
    assert codes(found) == [STARVED[0]] * 3 + [STARVED[1]]


def test_a_kernel_without_psi():
    """The run queue alone decides."""
    assert codes(judge_quickly(quick(*HOGS, SERVICE, pressure=None))) == STARVED


def test_asked_about_a_process_it_speaks_of_that_alone():
    """A long wait is a note, where it is no starvation; the machine is not mentioned."""
    fair = process(8, 0.2, 0.75, "other")
    seen = quick(*HOGS, SERVICE, fair)
    assert codes(judge_quickly(seen, (7,))) == [("jvm-cpu-wait", "warning")]
    [found] = judge_quickly(seen, (8,))
    assert (found.code, found.severity, found.entity.id) == ("jvm-cpu-wait", "note", 8)
    assert judge_quickly(seen, (9,)) == ()


def quota(throttled, *processes, periods=10):
    return CgroupQuota("/billing.service", 0.3, periods, throttled, "/sys/fs/cgroup/billing.service", 2, processes)


def test_a_quota_that_is_used_up():
    """The process is named, the cgroup is what the finding is about; its waits are not said twice."""
    billing = process(9, 0.3, 0.7, "billing")
    found = judge_quickly(
        quick(
            billing, quotas=(quota(6, billing),), cpus=HALF_IDLE, runnable=1.0, owned={9: Owned("/billing.service", 9)}
        )
    )
    [finding] = found
    assert codes(found) == [("cpu-throttled", "warning")]
    assert finding.entity == Entity("cgroup", "/billing.service")
    assert finding.summary == "9 (billing) is throttled in 60 % of the periods: its cgroup's quota is 0.3 CPUs"
    assert finding.next == "opskit cswitch 9"
    assert "systemctl set-property billing.service CPUQuota=100%" in finding.fix


@pytest.mark.parametrize(
    ("used_up", "expected"),
    [
        (quota(2, periods=10), [("cpu-throttled", "note")]),
        (quota(1, periods=100), []),
        (quota(8, process(9, 0.3, 0.7, nice=10)), [("cpu-throttled", "note")]),
        (quota(8), [("cpu-throttled", "warning")]),
        (quota(8)._replace(throttled_s=0.004), []),
    ],
    ids=["burst", "seldom", "nice", "unknown processes", "the last moment of each period"],
)
def test_throttling_that_is_less(used_up, expected):
    """Fewer than three periods are a burst; what has given way to others anyway is a note."""
    assert codes(judge_quickly(quick(quotas=(used_up,), cpus=IDLE_CPUS, runnable=0.5, pressure=0.0))) == expected


def test_a_thread_pinned_to_a_busy_cpu():
    """Inside its process and cgroup, with the CPUs that are idle."""
    pinned = process(9, 0.5, 0.5, "pinned", allowed=frozenset({0}), cpuset=BOTH)
    [found] = judge_quickly(
        quick(pinned, cpus=HALF_IDLE, runnable=2.0, pressure=0.5, owned={9: Owned("/web.service", 9)})
    )
    assert (found.code, found.severity) == ("thread-pinned-to-busy-cpu", "warning")
    assert found.entity == Entity("process", 9, 90, Entity("cgroup", "/web.service"))
    assert found.fix == "taskset -pc 1 9"
    modest = process(9, 0.5, 0.5, "pinned", allowed=frozenset({0}), cpuset=BOTH, nice=1)
    assert codes(judge_quickly(quick(modest, cpus=HALF_IDLE, pressure=0.5))) == [("thread-pinned-to-busy-cpu", "note")]


@pytest.mark.parametrize(
    ("cpus", "running", "found"),
    [(HALF_IDLE, 0.99, True), (HALF_IDLE, 0.8, False), (BUSY_CPUS, 0.99, False), (BUSY_CPUS[:1], 0.99, False)],
    ids=["alone", "not all of it", "all busy", "one CPU"],
)  # fmt: skip
def test_one_thread_that_uses_a_whole_cpu(cpus, running, found):
    """A note, where other CPUs are idle."""
    seen = judge_quickly(quick(process(9, running, 0.0, "xz"), cpus=cpus, runnable=1.0, pressure=0.0))
    assert codes(seen) == [("thread-uses-whole-cpu", "note")] * found
    if found:
        assert seen[0].summary == "9 (xz) uses 99 % of a CPU, while 1.0 of 2 CPUs are idle"


def test_a_machine_at_rest():
    """Nothing."""
    idle = tuple(CpuLoad(CpuUse(cpu, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)) for cpu in range(4))
    assert judge_quickly(quick(cpus=idle, runnable=0.0, pressure=0.0)) == ()
