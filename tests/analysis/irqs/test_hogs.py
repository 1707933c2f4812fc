"""Real-time threads as the cause of stalls: only where they keep that CPU for as long as its stalls last."""

from __future__ import annotations

import irqresults
import pytest

from opskit.analysis.irqs.jitter import judge
from opskit.collect.irqs.jitter import Stall
from opskit.collect.irqs.real_time import RealTime
from opskit.proc.process import Process

HOG = RealTime(
    Process(4242, "audio", 0, "root", 1, 1, "S", 1), 4242, "audio", "fifo", frozenset({0}), 0, 0.1, 0.01
)  # fmt: skip
METERS = (
    irqresults.meter(0, stalls=(Stall(0.01, 1.0),) * 90, stall_count=90),
    irqresults.meter(1, stalls=(), stall_count=0),
)


def verdict(*threads, meters=METERS, **changes):
    return judge(irqresults.jitter(meters=meters, real_time=threads, **changes)).verdict


def test_a_thread_that_runs_as_long_as_the_stalls_last():
    """Its name, its class, for how long at a time, how much in all; after the CPU that is worst."""
    assert verdict(HOG)[1] == (
        "Most stalls of CPU 0: real-time thread 4242 (audio, SCHED_FIFO) ran there for 10 ms at a time, 10 % of the time."
    )
    worker = HOG._replace(tid=4250, name="mixer", allowed=frozenset({0, 1}), policy="rr", slice_s=None)
    said = verdict(worker, HOG._replace(running=0.05))[1]
    assert "thread 4250 (mixer of 4242 audio, SCHED_RR) ran 10 % of the time; 1 more such thread" in said


@pytest.mark.parametrize(
    "changes",
    [
        {"running": 0.02},  # of stalls of 90 ms a second
        {"slice_s": 30e-6},  # often, but never for long
        {"allowed": frozenset({1}), "cpu": 1},  # that CPU has no stalls
        {"allowed": frozenset({0, 1}), "cpu": 1},
    ],
)
def test_a_thread_that_explains_nothing(changes):
    """No word about it."""
    assert not any("real-time" in said for said in verdict(HOG._replace(**changes)))


def test_a_cpu_that_such_a_thread_never_leaves():
    """The meter there gave no answer."""
    hog = HOG._replace(running=0.999, slice_s=None)
    failed = ((0, "no answer in time"),)
    wanted = "CPU 0 could not be measured: real-time thread 4242 (audio, SCHED_FIFO) ran there 99.9 % of the time."
    assert wanted in verdict(hog, meters=METERS[1:], failed=failed)
    assert verdict(hog, meters=(), failed=failed) == (wanted,)
    assert len(verdict(HOG, meters=METERS[1:], failed=failed)) == 1
    elsewhere = hog._replace(allowed=frozenset({5}), cpu=5)
    assert verdict(elsewhere, meters=(), failed=failed) == ("No CPU could be measured: no answer in time.",)


def test_many_cpus():
    """Three of them are named."""
    meters = tuple(METERS[0]._replace(cpu=cpu) for cpu in range(8))
    threads = [HOG._replace(tid=100 + cpu, cpu=cpu, allowed=frozenset({cpu})) for cpu in range(8)]
    said = verdict(*threads, meters=meters)
    assert sum("Most stalls of" in each for each in said) == 3
    assert "Real-time threads cause stalls on 5 more CPUs." in said


def test_a_window_without_a_wake_up():
    """Shorter than a millisecond."""
    none = irqresults.meter(0, late_ns={}, stalls=(), stall_count=0, elapsed_s=0.0004)
    assert verdict(meters=(none,)) == ("No wake-up was due on CPU 0 within 400 us; give a longer -i.",)
