"""What interrupts take of a CPU, measured by a thread there: beside threads that wait, on a CPU that another thread keeps."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import irqresults
import pytest

from opskit.collect.irqs.losses import measure_losses, with_loss
from opskit.host import Host
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


def measured(window_s=0.3, threads=None):
    host = Host(ProcFS())
    return measure_losses(host, [CPU], host.monotonic() + window_s, threads or {})


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


def test_time_in_ksoftirqd_counts(hog):
    """A thread that runs beside is taken for ksoftirqd here: its time is added."""
    pid = hog("ordinary")
    found = [measured(threads={CPU: pid}).get(CPU, 0.0)]
    while found[-1] < 0.2 and len(found) < 4:
        found.append(measured(threads={CPU: pid}).get(CPU, 0.0))
    assert found[-1] >= 0.2, found


def test_a_cpu_where_opskit_may_not_run():
    """It is left out."""
    host = Host(ProcFS())
    assert measure_losses(host, [8191], host.monotonic() + 0.1, {}) == {}


@pytest.mark.parametrize("ticks", [{"user": 0.3, "system": 0.1, "softirq": 0.5}, {"softirq": 1.0}, {}])
@pytest.mark.parametrize("share", [0.0, 0.42, 1.0])
def test_the_rest_of_the_time_is_divided_as_the_ticks_say(ticks, share):
    """All shares together are 1, none is below 0."""
    cpu = irqresults.row(0, **ticks).cpu
    found = with_loss(cpu, share)
    shares = found.use[1:]
    assert (found.use.softirq, found.is_measured) == (share, True)
    assert sum(shares) == pytest.approx(1)
    assert min(shares) >= 0
    assert with_loss(cpu, None) == cpu


def test_what_a_hypervisor_steals_is_no_loss_to_interrupts():
    """The measuring thread may see it as a gap: then the ticks bound what interrupts take."""
    cpu = irqresults.row(0, user=0.3, softirq=0.1, steal=0.4).cpu
    assert with_loss(cpu, 0.5).use.softirq == 0.1
    assert with_loss(cpu, 0.05).use.softirq == 0.05
