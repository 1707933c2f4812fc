"""The quick look: which machines' threads are read, and real cgroups, pinned threads and busy machines."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest
from cgroups import new_cgroup
from cswitchtrees import HZ, Machine
from nextsteps import try_next

from opskit.analysis.cswitch.quick import judge_quickly
from opskit.analysis.finding import is_failure
from opskit.checks.cswitch import check
from opskit.checks.look import Look
from opskit.collect.cswitch.quick import look_quickly
from opskit.collect.host.cpu import collect as cpus_of
from opskit.host import Host
from opskit.proc.fs import ProcFS

WINDOW_S, TRIES = 0.4, 6
SPIN = "import sys\nprint(flush=True)\nwhile True: sum(range(10_000))"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="cgroups need root")


def psi(share):
    return lambda seconds: f"some avg10=0.00 avg60=0.00 avg300=0.00 total={round(share * seconds * 1e6)}\n"


def machine(used, pressure, **more):
    """Two CPUs of which so much is used, with a thread of `job` that waits."""
    found = Machine(p42={42: ("job", 0.5, 0.4)}, **more)
    if pressure is not None:
        found.odd["proc/pressure/cpu"] = psi(pressure)

    def stat(seconds):
        ran, idle = round(used * seconds * HZ), round((1 - used) * seconds * HZ)
        return "".join(f"cpu{cpu} {ran} 0 0 {idle} 0 0 0 0 0 0\n" for cpu in range(2)) + "ctxt 9\n"

    found.odd["proc/stat"] = stat
    return found


@pytest.mark.parametrize(
    ("used", "pressure", "is_calm"),
    [(0.2, 0.0, True), (0.2, 0.04, True), (0.2, 0.06, False), (0.5, 0.0, False), (0.2, None, False)],
    ids=["calm", "short waits", "waits", "a CPU in use", "no PSI"],
)  # fmt: skip
def test_threads_are_read_where_some_wait_or_a_cpu_is_used_up(tree, used, pressure, is_calm):
    """PSI is an average of the CPUs: 6 % of two is more than a tenth of one. Where nothing is known, they are read."""
    quick = look_quickly(machine(used, pressure).host(tree), (), 1.0)
    assert quick.is_calm == is_calm
    assert [each.process.pid for each in quick.facts.processes] == ([] if is_calm else [42])
    if not is_calm:
        [process] = quick.facts.processes
        assert process.running == pytest.approx(0.5, abs=0.02)
        assert process.waiting == pytest.approx(0.4, abs=0.02)


def test_a_late_reading_does_not_change_the_shares(tree):
    """Other checks run meanwhile: each reading has its own time."""
    host = machine(1.0, 0.9).host(tree)
    sleep = host.sleep
    host.sleep = lambda seconds: sleep(seconds + 0.07)
    quick = look_quickly(host, (), 1.0)
    [process] = quick.facts.processes
    assert (process.running, process.waiting) == (pytest.approx(0.5, abs=0.1), pytest.approx(0.4, abs=0.1))
    assert process.running / process.waiting == pytest.approx(1.25, abs=0.01)
    assert quick.facts.pressure == pytest.approx(0.9, abs=0.15)


def test_a_kernel_without_schedstat_is_a_gap(tree):
    """What was not looked at is said, and a copy has no rates."""
    staged = machine(1.0, 0.9)
    staged.odd.update(dict.fromkeys(("proc/42/task/42/schedstat", "proc/1/schedstat"), lambda _: "0 0 0\n"))
    outcome = check(Look(staged.host(tree), (), 1.0))
    assert [(gap.check, gap.what) for gap in outcome.gaps] == [("cswitch", "how long threads wait for a CPU")]
    assert list(outcome.looked_at) == ["2 CPUs", "1 thread"]
    (tree({}) / "proc/meminfo").write_text("MemTotal: 1 kB\n")
    assert check(Look(Host.at(str(tree({})), None), (), 0.0)).gaps[0].reason == "a copy has no rates"


@contextmanager
def spinners(count, *before, **more):
    """Processes that only compute."""
    with ExitStack() as stack:
        started = []
        for _ in range(count):
            started.append(subprocess.Popen([*before, sys.executable, "-c", SPIN], stdout=subprocess.PIPE, **more))
            stack.callback(started[-1].communicate)
            stack.callback(started[-1].kill)
        for each in started:
            each.stdout.readline()
        yield [each.pid for each in started]


def needs_idle_cpus():
    """Skip where other programs use the CPUs."""
    if os.cpu_count() < 2:
        pytest.skip("needs two CPUs")
    host = Host(ProcFS())
    facts = cpus_of(host, 0.1)
    if min(use.idle for use in facts.cpus) < 0.7:
        pytest.skip("the CPUs are in use")


def found(pids=()):
    return judge_quickly(look_quickly(Host(ProcFS()), pids, WINDOW_S), pids)


@needs_root
def test_a_cgroup_that_is_throttled():
    """The finding is about the cgroup, and names a process of it; asked about another process, it is not said."""
    with (
        new_cgroup("cpu", f"opskit-test-quick-{os.getpid()}", "cpu.cfs_quota_us cpu.max") as place,
        spinners(1) as [pid],
    ):
        old = (place / "cpu.cfs_quota_us").exists()
        (place / ("cpu.cfs_quota_us" if old else "cpu.max")).write_text("15000" if old else "15000 100000")
        (place / "cgroup.procs").write_text(str(pid))
        for _ in range(TRIES):
            seen = [each for each in found((pid,)) if each.code == "cpu-throttled"]
            if seen and seen[0].severity == "warning":
                break
        [finding] = seen
        assert (finding.severity, finding.entity.kind) == ("warning", "cgroup")
        assert str(finding.entity.id).endswith(place.name)
        assert finding.summary.startswith(f"{pid} (")
        assert try_next(seen, "cpu-throttled") == f"opskit cswitch {pid}"
        assert all(each.code != "cpu-throttled" for each in found((os.getpid(),)))


def test_two_processes_pinned_to_one_cpu():
    """A warning where another CPU is idle; on a machine that is busy otherwise, none."""
    needs_idle_cpus()
    cpus = sorted(os.sched_getaffinity(0))
    with spinners(2, "taskset", "-c", str(cpus[0])) as pids:
        for _ in range(TRIES):
            quick = look_quickly(Host(ProcFS()), (), WINDOW_S)
            seen = [
                each
                for each in judge_quickly(quick)
                if each.code == "thread-pinned-to-busy-cpu" and each.entity.id in pids
            ]
            others = [load.use.idle for load in quick.facts.cpus if load.use.cpu != cpus[0]]
            assert not seen or max(others) >= 0.5
            if seen:
                assert seen[0].severity == "warning"
                return
    pytest.skip("the other CPUs were in use, or the test's CPU was taken")


def test_a_busy_machine_has_no_warning():
    """A spinner for each CPU and more, some of them nice'd, and one alone that uses its CPU."""
    mine = set()
    with spinners(os.cpu_count() + 1, start_new_session=True) as many, spinners(2, "nice", "-n", "10") as nice:
        mine.update(many + nice)
        about = [each for each in found() if each.entity.id in mine]
    assert not is_failure(about), about


def test_a_thread_that_uses_a_whole_cpu_is_a_note():
    """Where the other CPUs are idle; what to type is a profile of it."""
    needs_idle_cpus()
    with spinners(1) as [pid]:
        for _ in range(TRIES):
            seen = [each for each in found() if each.code == "thread-uses-whole-cpu" and each.entity.id == pid]
            if seen:
                assert seen[0].severity == "note"
                assert try_next(seen, "thread-uses-whole-cpu") == f"opskit profile {pid}"
                return
    pytest.skip("the other CPUs were in use")
