"""What interrupts take of a CPU, measured by a thread there: beside threads that wait, on a CPU that another thread keeps."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import irqresults
import pytest

from opskit.collect import softirq_losses
from opskit.collect.softirq_losses import measuring_losses, with_loss
from opskit.host import Host
from opskit.proc.files.cpu_times import CpuTime
from opskit.proc.fs import ProcFS

CPU = min(os.sched_getaffinity(0))
HOG = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
if sys.argv[2] == "real-time":
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
print(1, flush=True)
while True: pass
"""


@pytest.fixture
def hog():
    """Start a program that wants all of CPU: a function of `real-time` or `ordinary`."""
    started = []

    def start(kind):
        started.append(subprocess.Popen([sys.executable, "-c", HOG, str(CPU), kind], stdout=subprocess.PIPE))
        assert started[-1].stdout.readline() == b"1\n"
        return started[-1].pid

    yield start
    for each in started:
        each.kill()
        each.wait()
        each.stdout.close()


def measured(cpu=CPU, window_s=0.3):
    host = Host(ProcFS())
    until_s = host.monotonic() + window_s
    with measuring_losses(host, [cpu], until_s) as losses:
        host.sleep(window_s)
        return losses()


def children():
    """Our children that measure."""
    lines = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "comm="], capture_output=True, text=True, check=False
    )
    return [line for line in lines.stdout.split() if line.startswith("opskit-meas")]


def test_waiting_for_other_threads_is_no_loss(hog):
    """Two threads want the CPU it: the measuring one waits for half of the time or more, and loses little of its own to interrupts."""
    for _ in range(2):
        hog("ordinary")
    least = 1.0
    for _ in range(4):  # interrupts of other programs may come meanwhile
        least = min(least, *measured().values(), 1.0)
        if least < 0.25:
            break
    assert least < 0.25
    assert children() == []


def test_a_cpu_that_a_real_time_thread_keeps(hog, root_only):
    """It is left out, and the child that got no time is gone: it could not end there."""
    hog("real-time")
    begun = time.monotonic()
    assert measured() == {}
    assert children() == []
    assert time.monotonic() - begun < 60


def test_time_in_ksoftirqd_counts(hog, monkeypatch):
    """A thread that runs beside is taken for ksoftirqd here: its time is added."""
    pid = hog("ordinary")
    monkeypatch.setattr(softirq_losses, "_softirq_threads", lambda _host, _cpus: [(CPU, pid)])
    found = [measured().get(CPU, 0.0)]
    while found[-1] < 0.2 and len(found) < 4:
        found.append(measured().get(CPU, 0.0))
    assert found[-1] >= 0.2, found


def test_a_cpu_where_opskit_may_not_run():
    """It is left out."""
    assert measured(8191, 0.1) == {}


@pytest.mark.parametrize(("window_s", "most_s"), [(0.2, 0.004), (0.02, 0.1), (-1, 0.1)])
def test_too_little_time(window_s, most_s):
    """Nothing is started."""
    host = Host(ProcFS())
    with measuring_losses(host, [CPU], host.monotonic() + window_s, most_s) as losses:
        assert children() == []
        assert losses() == {}


def test_the_threads_for_softirqs(root_only):
    """Those of the kernel, one for each CPU; not a program with such a name."""
    program = [
        sys.executable,
        "-c",
        f"open('/proc/self/comm', 'w').write('ksoftirqd/{CPU}'); print(1, flush=True); input()",
    ]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as named:
        try:
            named.stdout.readline()
            found = dict(softirq_losses._softirq_threads(Host(ProcFS()), [CPU, 8191]))
        finally:
            named.kill()
    assert [*found] == [CPU]
    assert found[CPU] != named.pid


@pytest.mark.parametrize("ticks", [{"user": 0.3, "system": 0.1, "softirq": 0.5}, {"softirq": 1.0}, {}])
@pytest.mark.parametrize("share", [0.0, 0.42, 1.0])
def test_the_rest_of_the_time_is_divided_as_the_ticks_say(ticks, share):
    """All shares together are 1, none is below 0."""
    use = irqresults.row(0, **ticks).cpu.use
    found = with_loss(use, share)
    assert found.softirq == share
    assert sum(found[1:]) == pytest.approx(1)
    assert min(found[1:]) >= 0


def test_what_a_hypervisor_steals_is_no_loss_to_interrupts():
    """The measuring thread may see it as a gap: then the ticks bound what interrupts take."""
    use = irqresults.row(0, user=0.3, softirq=0.1, steal=0.4).cpu.use
    assert with_loss(use, 0.5).softirq == 0.1
    assert with_loss(use, 0.05).softirq == 0.05


def test_which_cpus_are_worth_measuring():
    """Those with most softirqs: not by one tick alone, no isolated ones, at most four."""
    before = dict.fromkeys(range(9), CpuTime(0, 0, 0, 0, 0))
    after = {cpu: CpuTime(90 - 9 * cpu, 0, 0, 10, 0, 0, 9 * cpu) for cpu in range(9)}
    assert softirq_losses.worth_measuring(before, after, {8}) == [7, 6, 5, 4]
    assert softirq_losses.worth_measuring(before, {0: CpuTime(5, 0, 0, 0, 0, 0, 1)}) == []
