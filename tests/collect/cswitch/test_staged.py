"""Real threads that get no CPU, for each reason, and healthy busy ones; their waits and switches beside the scheduler's tracepoints."""

from __future__ import annotations

import os
import re
import subprocess
import time
from contextlib import contextmanager

import floodstage
import pytest
import schedtrace
from cgroups import new_cgroup
from nativeprograms import build

from opskit.analysis.cswitch.judge import judge
from opskit.analysis.finding import is_failure
from opskit.collect.cswitch.collect import Collector
from opskit.collect.cswitch.facts import Request
from opskit.host import Host
from opskit.proc.fs import ProcFS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="real-time threads, cgroups and tracing need root")
WINDOW_S, TRIES = 0.4, 8
CPU = min(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """tests/native/threads.c."""
    return build("threads.c", tmp_path_factory.mktemp("threads") / "threads", "-O2")


@contextmanager
def running(*words, cpus=None, before=()):
    """The PID of a program that prints a line when its threads run."""
    pinned = ("taskset", "-c", cpus) if cpus is not None else ()
    with subprocess.Popen([*map(str, (*before, *pinned, *words))], stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


def look(pid, window_s=WINDOW_S):
    return Collector(Host(ProcFS()), Request(pid, window_s)).look()


def until(pid, is_right):
    """The first answer that is right: other programs of the machine change what a window shows."""
    for _ in range(TRIES):
        result = judge(look(pid))
        if is_right(result):
            return result
    raise AssertionError((result.verdict, result.findings, result.facts))


def because(*causes):
    return lambda result: result.rows and result.rows[0].why in causes


def found(code):
    return lambda result: any(finding.code == code for finding in result.findings)


@pytest.mark.parametrize("words", [("burn", 4), ("steps", 3), ("pipe", 2)], ids=lambda words: words[0])
def test_waits_and_switches_are_those_of_the_trace(program, tmp_path, words):
    """Waits within 3 points, switches within 5 %; the load of other tests shifts the ends of a window, so the best of three counts."""
    seen = []
    with running(program, *words, cpus=CPU) as pid:
        tids = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
        for _ in range(3):
            with schedtrace.traced(tids, CPU, tmp_path) as trace, schedtrace.promptly():
                begun_s = time.monotonic()
                facts = look(pid, 0.3 if "pipe" in words else 0.5)  # a trace of many switches takes long to read
            points = rates = 0.0
            for thread in facts.threads:
                ended_s = begun_s + facts.window_s
                true = trace.of(thread.tid, begun_s, ended_s)
                late = trace.of(
                    thread.tid, begun_s + 0.2 * facts.window_s, ended_s
                )  # its switches are read from here on
                switches = late.voluntary + late.involuntary
                points = max(points, 100 * abs(thread.waiting - true.waiting))
                rates = max(rates, abs((thread.voluntary + thread.involuntary) / switches - 1) if switches > 50 else 0)
            seen.append((points, rates))
            if points <= 3 and rates <= 0.05:
                assert len(facts.threads) == words[1]
                return
    raise AssertionError(seen)


def test_more_threads_than_cpus(program):
    """How many want to run, on how many CPUs; that its own threads do is a reason to look at what they compute."""
    allowed = sorted(os.sched_getaffinity(0))[:2]
    with running(program, "burn", 4 * len(allowed), cpus=",".join(map(str, allowed))) as pid:
        result = until(pid, because("outnumbered", "pinned"))
    said = re.fullmatch(
        r"burn-\d waits (\d+) % of the time for a CPU: (\d+) runnable threads on .*CPUs?.*", result.verdict[0]
    )
    if len(os.sched_getaffinity(0)) == 2 and os.cpu_count() == 2:
        assert said, result.verdict
        assert int(said[1]) >= 65
        assert int(said[2]) >= 7
        assert found("jvm-cpu-wait")(result)
    assert all(row.thread.allowed == set(allowed) for row in result.rows)


@pytest.mark.parametrize("cpus", [CPU, None], ids=["one CPU", "all CPUs"])
def test_a_quota_that_is_used_up(program, cpus):
    """The part of the wait that throttling is, the quota and its cgroup. cpu.stat adds the times of all CPUs: the share is that of one."""
    with new_cgroup("cpu", f"opskit-test-cswitch-{os.getpid()}", "cpu.cfs_quota_us cpu.max") as place:
        old = (place / "cpu.cfs_quota_us").exists()
        (place / ("cpu.cfs_quota_us" if old else "cpu.max")).write_text("20000" if old else "20000 100000")
        with running(program, "burn", 2, cpus=cpus) as pid:
            (place / "cgroup.procs").write_text(str(pid))
            result = until(pid, found("cpu-throttled"))
    said = r"burn-\d waits \d+ % of the time for a CPU: its cgroup \S+ has used up its quota of 0\.2 CPUs (in )?\d+ % of the (time|periods)\."
    assert re.fullmatch(said, result.verdict[0])
    (quota,) = result.facts.quotas
    assert quota.cpus == 0.2
    assert quota.throttled_periods >= 2
    assert 0.1 < quota.throttled <= 1
    least = 0.5 if cpus is not None else 0
    assert all(least * each.waiting < each.throttled <= each.waiting for each in result.facts.threads)


def test_pinned_to_one_cpu(program):
    """Another CPU has time left, or the answer does not say so."""
    with running(program, "burn", 3, cpus=CPU) as pid:
        result = until(pid, because("outnumbered", "pinned"))
    idle = [load.use.cpu for load in result.facts.cpus if load.use.cpu != CPU and load.use.idle >= 0.5]
    assert found("thread-pinned-to-busy-cpu")(result) == bool(idle), result
    if idle:
        finding = next(each for each in result.findings if each.code == "thread-pinned-to-busy-cpu")
        assert finding.fix.startswith("taskset -pc ")
        assert finding.fix.endswith(str(finding.entity.id))


@pytest.mark.parametrize("call", ["futex", "pipe"])
def test_two_threads_that_wake_each_other(program, call):
    """Both are named, with their switches; it costs CPU, and is no harm by itself."""
    with running(program, call) as pid:
        result = until(pid, found("thread-ping-pong"))
    said = [line for line in result.verdict if "wake each other" in line]
    assert re.match(rf"(lock )?ping-pong: {call}-[01] and {call}-[01] wake each other [\d,]+ times a second", said[0])
    assert ("lock" in said[0]) <= (call == "futex")
    assert not is_failure([each for each in result.findings if each.code == "thread-ping-pong"])


def test_a_real_time_thread_takes_the_cpu(program):
    """A thread that gets next to nothing waits nearly all the time, though schedstat adds a wait only when it ends."""
    with (
        running(program, "burn", 1, cpus=CPU) as pid,
        running(program, "burn", 1, cpus=CPU, before=("chrt", "-r", "10")),
    ):
        result = until(pid, lambda result: result.rows and (result.rows[0].thread.waiting or 0) > 0.8)
    thread = result.rows[0].thread
    assert thread.running + thread.waiting <= 1.001
    assert result.rows[0].why in ("outnumbered", "pinned")


@pytest.mark.parametrize("before", [("nice", "-n", "19"), ("chrt", "-i", "0")], ids=["nice 19", "SCHED_IDLE"])
def test_what_takes_only_what_others_leave_is_no_warning(program, before):
    """It asked for that: its wait is shown."""
    with running(program, "burn", 1, cpus=CPU), running(program, "burn", 1, cpus=CPU, before=before) as pid:
        result = until(pid, lambda result: result.rows and (result.rows[0].thread.waiting or 0) > 0.7)
    assert not is_failure(result.findings), result.findings


@pytest.mark.parametrize("words", [("steps", 3), ("short", 1)], ids=lambda words: words[0])
def test_a_healthy_program_that_is_busy(program, words):
    """Short sleeps and threads that end at once: no warning."""
    with running(program, *words) as pid:
        for _ in range(2):
            result = judge(look(pid))
            if sum(load.use.idle for load in result.facts.cpus) > 0.3 * len(result.facts.cpus):
                assert not is_failure(result.findings), result.findings


def test_threads_that_end_in_the_window_are_counted_as_missing(program):
    """What they used is in the process's time, and in none of its threads."""
    with running(program, "short", 1) as pid:
        result = until(pid, lambda result: bool(result.facts.missing))
    assert re.search(r"thread.* ended in the window, and used \d+ % of a CPU", result.facts.missing[0])


def test_softirqs_are_taken_from_a_pinned_thread(tmp_path):
    """The counters call it the thread's own time. A thread beside it measures what it loses: within 8 points, of some windows."""
    seen = []
    with floodstage.flood(tmp_path, 120_000) as staged, schedtrace.promptly():
        # Other tests run on that CPU too: both go before them.
        os.sched_setscheduler(staged.spinner.pid, os.SCHED_RR, os.sched_param(1))
        time.sleep(0.4)
        for _ in range(TRIES):
            begin_ns = time.monotonic_ns()
            result = judge(look(staged.spinner.pid, 1.0))
            load = next(load for load in result.facts.cpus if load.use.cpu == staged.cpu)
            seen.append(
                (load.use.softirq, staged.lost(begin_ns, time.monotonic_ns()), load.is_measured, result.verdict)
            )
            if load.is_measured and abs(seen[-1][0] - seen[-1][1]) <= 0.08 and found("irq-pinned-thread")(result):
                break
        else:
            raise AssertionError(seen)
        said = rf"spinner \({staged.spinner.pid}\) is losing \d+ % of CPU {staged.cpu} to softirqs\."
        assert re.fullmatch(said, result.verdict[0])
        assert result.next == "opskit irqs"
        assert result.facts.threads[0].waiting < 0.2, "it does not wait"
