"""Threads and machines in the kernel's formats whose counters grow while opskit waits: torn reads, kernels without schedstat, threads that come and go."""

from __future__ import annotations

import pytest
from cswitchtrees import HZ, OLD_S, Machine

from opskit.analysis.cswitch.judge import judge
from opskit.collect.cswitch.collect import Collector
from opskit.collect.cswitch.facts import Request

PID, WINDOW_S = 42, 1.0


@pytest.fixture
def look(tree):
    """What is read of a machine, of the process PID or of all."""

    def run(machine, pid=PID):
        return Collector(machine.host(tree), Request(pid, WINDOW_S)).look()

    return run


def one(facts):
    [thread] = facts.threads
    return thread


def program(running=0.5, waiting=0.3, **more):
    """A process with one thread."""
    return Machine(p42={PID: ("work", running, waiting)}, **more)


def path(name):
    return f"proc/{PID}/task/{PID}/{name}"


def test_what_a_thread_does(look):
    """Shares of the window, switches a second; without `sched` migrations are unknown."""
    thread = one(look(program()))
    assert (thread.name, thread.cpu, thread.allowed) == ("work", 1, {0, 1})
    assert thread.running == pytest.approx(0.5, abs=0.01)
    assert thread.waiting == pytest.approx(0.3, abs=0.01)
    assert thread.voluntary == pytest.approx(20, rel=0.1)
    assert (thread.involuntary, thread.migrations) == (0, None)


@pytest.mark.parametrize("zeros", [None, "0 0 0\n"])
def test_a_kernel_without_schedstat(look, zeros):
    """CPU time by clock ticks; waits are unknown, and the answer says so."""
    machine = program()
    machine.odd = dict.fromkeys((path("schedstat"), "proc/1/schedstat"), lambda _: zeros)
    facts = look(machine)
    assert one(facts).running == pytest.approx(0.5, abs=0.03)
    assert (one(facts).waiting, one(facts).slices) == (None, None)
    assert "this kernel does not fill schedstat" in facts.missing[0]
    assert judge(facts).verdict == ("42 (work): how long its threads wait for a CPU is unknown.",)
    assert judge(look(machine, None)).verdict == ("How long processes wait for a CPU is unknown.",)


@pytest.mark.parametrize("torn", ["", "-", "x 1 2\n"])
@pytest.mark.parametrize("at_end", [False, True])
def test_a_text_that_is_cut_short(look, torn, at_end):
    """The hundred hours of the thread are not taken for this window."""
    machine = Machine(p42={PID: ("work", 0.5, 0.3), 43: ("other", 0.2, 0.1)})
    machine.odd[path("schedstat")] = lambda seconds: (
        torn if (seconds > 0.9) == at_end else f"{round((OLD_S + 0.5 * seconds) * 1e9)} 9 9\n"
    )
    facts = look(machine)
    shares = {thread.name: thread.running for thread in facts.threads}
    assert shares.pop("other") == pytest.approx(0.2, abs=0.01)
    assert sum(shares.values()) <= 0.51, shares


def test_cpus_that_may_be_added_later(look):
    """Cpus_allowed_list has all that the kernel could use: only those that are online count, also for others' load."""
    others = dict.fromkeys(range(50, 54), ("batch", 0.3, 0.7))
    machine = Machine(allowed="0-127", p42={PID: ("work", 0.25, 0.75)}, p50=others)
    facts = look(machine)
    assert one(facts).allowed == {0, 1}
    assert judge(facts).verdict[0] == (
        "work waits 75 % of the time for a CPU: 5 runnable threads on 2 CPUs, 4 of other processes (most of 50, batch)."
    )


def test_threads_that_come_and_go(look):
    """A new thread counts from its start; one that has ended is no row; a TID with smaller counters is another thread."""
    machine = program(0.2, 0.1)
    for tid in (43, 44, 45):
        machine.threads[PID, tid] = (f"t{tid}", 0.0, 0.0)

    def from_zero(after_s, running):
        def text(seconds):
            return None if seconds < after_s else f"{round(running * (seconds - after_s) * 1e9)} 0 3\n"

        return text

    base = f"proc/{PID}/task"
    machine.odd[f"{base}/43/schedstat"] = from_zero(0.5, 0.8)
    machine.odd[f"{base}/44/schedstat"] = lambda seconds: "9 9 9\n" if seconds < 0.5 else None
    machine.odd[f"{base}/45/schedstat"] = lambda s: (
        f"{round((OLD_S + s) * 1e9)} 0 1\n" if s < 0.5 else from_zero(0.5, 0.4)(s)
    )
    facts = look(machine)
    shares = {thread.name: thread.running for thread in facts.threads}
    assert "t44" not in shares
    assert shares["t43"] == pytest.approx(0.4, abs=0.02)
    assert shares["t45"] == pytest.approx(0.2, abs=0.02)


def test_one_cpu_pins_nobody(look):
    """Threads that may use all CPUs there are."""
    assert [load.pinned for load in look(program(cpus=1, allowed="0")).cpus] == [()]
    pinned = look(program(allowed="1")).cpus
    assert [[each[1] for each in load.pinned] for load in pinned] == [[], [PID]]


@pytest.mark.parametrize(("cpuset", "why"), [("1", "outnumbered"), ("0-1", "pinned")])
def test_a_process_in_a_cpuset(look, cpuset, why):
    """What its own cgroup forbids is no CPU to move to, though opskit may use it."""
    machine = program(0.1, 0.9, allowed="1")
    own = {
        f"proc/{PID}/cgroup": "0::/app\n",
        f"proc/{PID}/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
        "sys/fs/cgroup/cgroup.controllers": "cpuset cpu\n",
        "sys/fs/cgroup/app/cpuset.cpus.effective": f"{cpuset}\n",
    }
    machine.odd = {path: lambda _, text=text: text for path, text in own.items()}
    machine.odd["proc/stat"] = lambda s: f"cpu0 0 0 0 {round(s * HZ)} 0 0 0 0\ncpu1 {round(s * HZ)} 0 0 0 0 0 0 0\n"
    assert [row.why for row in judge(look(machine, None)).processes] == [why]
    assert [row.why for row in judge(look(machine)).rows] == [why]


def test_a_machine_that_shows_little(look):
    """A container's runtime may hide all but the processes."""
    machine = program(0.3, 0.6)
    machine.odd = dict.fromkeys(("proc/stat", "proc/loadavg"), lambda _: None)
    facts = look(machine)
    assert (facts.cpus, facts.runnable, facts.switches) == ((), None, None)
    assert judge(facts).verdict == ("42 (work): the longest wait for a CPU is 60 % of the time (work).",)
    assert judge(look(machine, None)).verdict
