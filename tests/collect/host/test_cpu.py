"""Utilisation and saturation of CPUs: machines in the kernel's formats, and this one."""

from __future__ import annotations

import pytest
from nextsteps import try_next

from opskit.analysis.host.cpu import judge
from opskit.checks.cpu import check
from opskit.checks.look import Look
from opskit.collect.host.cpu import collect
from opskit.host import Host
from opskit.proc.files.pressure import NONE_HERE
from opskit.proc.fs import ProcFS

CPUS = "sys/devices/system/cpu"
WINDOW_S = 1.0


def stat(ticks, steal=0.0, iowait=0.0):
    """Four CPUs after so many ticks, of which the hypervisor took a part."""
    shares = (round(ticks * (1 - steal - iowait)), 0, 0, 0, round(ticks * iowait), 0, 0, round(ticks * steal))
    return "".join(f"cpu{cpu} {' '.join(map(str, shares))} 0 0\n" for cpu in range(4))


def files(ticks=100, steal=0.0, waited=0, avg60="0.00", load="0.50", **more):
    found = {
        "proc/stat": stat(ticks, steal),
        "proc/loadavg": f"{load} 0.40 0.30 1/80 99\n",
        "proc/pressure/cpu": f"some avg10=1.00 avg60={avg60} avg300=0.00 total={waited}\n",
        f"{CPUS}/present": "0-3\n",
        f"{CPUS}/online": "0-3\n",
    }
    return {**found, **{key.replace("__", "/"): value for key, value in more.items()}}


@pytest.fixture
def live(tree):
    """A machine with these files, which become others while opskit waits."""

    def make(before, after):
        root, now = tree({"proc/version": "", **before}), [0.0]
        host = Host(ProcFS(str(root / "proc"), str(root)))

        def sleep(seconds):
            now[0] += seconds
            tree(after)

        host.monotonic, host.sleep = (lambda: now[0]), sleep
        return host

    return make


@pytest.fixture
def judged(live):
    """The code and the severity of each finding."""

    def run(**more):
        host = live(files(**{**more, "steal": 0.0}), files(200, **{"waited": 400_000, **more}))
        return [(each.code, each.severity) for each in judge(collect(host, WINDOW_S))]

    return run


@pytest.mark.parametrize(("steal", "found"), [(0.09, False), (0.11, True), (0.5, True)])
def test_time_that_the_hypervisor_takes(judged, steal, found):
    """From 10 % of the time of all CPUs on. The window has so many ticks in 200."""
    assert judged(steal=steal / 2) == [("cpu-stolen", "warning")] * found


def test_time_that_the_hypervisor_takes_from_one_cpu(live):
    """The others have no work: what they lose is nothing."""
    idle = "".join(f"cpu{cpu} 100 0 0 200 0 0 0 0 0 0\n" for cpu in range(1, 4))
    before = {**files(), "proc/stat": "cpu0 100 0 0 100 0 0 0 0 0 0\n" + idle.replace(" 200 ", " 100 ")}
    after = {"proc/stat": "cpu0 165 0 0 100 0 0 0 35 0 0\n" + idle}
    [found] = judge(collect(live(before, after), WINDOW_S))
    assert found.summary == "the hypervisor takes 35 % of the time of CPU 0 while it has work"
    assert found.share == 0.35


@pytest.mark.parametrize(
    ("load", "avg60", "found"),
    [("9.10", "3.00", True), ("9.10", "60.00", False), ("5.50", "3.00", False), ("3.90", "0.00", False)],
    ids=["blocked tasks", "a build", "few more than CPUs", "below"],
)  # fmt: skip
def test_a_load_that_is_not_for_cpus(judged, load, avg60, found):
    """PSI of the same minute says whether tasks waited for a CPU, or slept in state D."""
    assert judged(load=load, avg60=avg60) == [("load-not-cpu", "note")] * found


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({f"{CPUS}__online".replace("/", "__"): "0-2\n"}, True),
        ({f"{CPUS}__online".replace("/", "__"): "0-2\n", f"{CPUS}__smt__control".replace("/", "__"): "off\n"}, False),
        ({f"{CPUS}__possible".replace("/", "__"): "0-239\n"}, False),
    ],
    ids=["one", "SMT is off", "CPUs that may be added"],
)  # fmt: skip
def test_cpus_that_are_offline(judged, more, found):
    """A note; SMT that is off, and CPUs that the virtual machine does not have yet, are none."""
    assert judged(**more) == [("cpu-offline", "note")] * found


@pytest.mark.parametrize(
    ("runnable", "waited", "found"), [(9, 900_000, True), (9, 100_000, False), (4, 900_000, False)],
    ids=["crowded", "nobody waits", "as many as CPUs"],
)  # fmt: skip
def test_more_tasks_than_cpus(live, runnable, waited, found):
    """A note; opskit itself is not counted."""
    before = {**files(), "proc/stat": "".join(f"cpu{cpu} 100 0 0 100 0 0 0 0 0 0\n" for cpu in range(4))}
    after = {**files(waited=waited), "proc/loadavg": f"3.00 1 1 {runnable + 1}/80 99\n"}
    after["proc/stat"] = before["proc/stat"].replace("cpu0 100", "cpu0 200").replace(" 100 0 0 100", " 200 0 0 100")
    noted = [each for each in judge(collect(live(before, after), WINDOW_S)) if each.code == "runnable-above-cpus"]
    assert [(each.severity, each.summary) for each in noted] == [("note", "9.0 tasks want to run on 4 CPUs")] * found
    if found:
        assert try_next(noted, "runnable-above-cpus") == "opskit cswitch"


def test_the_sentences(live):
    """With the numbers, and what to type."""
    before = files(**{"sys/devices/system/cpu/online": "0,2-3\n"})
    host = live(before, {**before, "proc/stat": stat(200, 0.2), "proc/loadavg": "9.10 1 1 1/80 99\n"})
    found = judge(collect(host, WINDOW_S))
    assert [each.summary for each in found] == [
        "the hypervisor takes 40 % of the time of 4 CPUs while they have work",
        "the load average of 9.1 on 4 CPUs is not for CPUs: tasks sleep uninterruptibly (state D)",
        "1 CPU of 5 is offline: 1",
    ]
    assert try_next(found, "cpu-stolen") == "vmstat 1"
    assert try_next(found, "load-not-cpu") == "opskit io"


def test_a_kernel_without_psi(live):
    """It is said, once; the rest is judged."""
    before, after = files(), files(200)
    for each in (before, after):
        del each["proc/pressure/cpu"]
    outcome = check(Look(live(before, after), (), WINDOW_S))
    assert list(outcome.looked_at) == ["4 CPUs", "100 % used", "load average 0.5"]
    [gap] = outcome.gaps
    assert gap.what == "CPU pressure"
    assert gap.reason == NONE_HERE


def test_a_container_with_a_quota(live):
    """Its own limit is told beside the CPUs of the machine."""
    own = {
        "proc/self/cgroup": "0::/\n",
        "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu\n",
        "sys/fs/cgroup/cgroup.type": "domain\n",
        "sys/fs/cgroup/cgroup.procs": "1\n",
        "sys/fs/cgroup/cpu.max": "150000 100000\n",
    }
    outcome = check(Look(live({**files(), **own}, files(200)), (), WINDOW_S))
    assert "a quota of 1.5 CPUs" in outcome.looked_at


def test_a_copy_has_no_rates(tree):
    """What does not need them is judged."""
    root = tree({"proc/meminfo": "MemTotal: 1 kB\n", **files(load="9.10", avg60="1.00")})
    outcome = check(Look(Host.at(str(root), None), (), 0.0))
    assert [each.code for each in outcome.findings] == ["load-not-cpu"]
    assert [(gap.what, gap.reason) for gap in outcome.gaps] == [("use of the CPUs", "a copy has no rates")]


def test_this_machine():
    """Its CPUs are counted, and nothing is said twice of processes."""
    look = Look(Host(ProcFS()), (), 0.05)
    assert check(look).looked_at[0].endswith(("CPU", "CPUs"))
    assert not any(check(look._replace(pids=(1,)))[:3])
