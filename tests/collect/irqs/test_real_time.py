"""Real-time threads of this machine: those before a window, and those that start in it."""

from __future__ import annotations

import time

from opskit.collect.irqs.real_time import RealTimeScan
from opskit.host import Host
from opskit.proc.fs import ProcFS

SPIN = """
import os, sys, time
os.sched_setscheduler(0, {"fifo": os.SCHED_FIFO, "rr": os.SCHED_RR | os.SCHED_RESET_ON_FORK, "other": os.SCHED_OTHER}[sys.argv[1]],
                      os.sched_param(0 if sys.argv[1] == "other" else 1))
print(1, flush=True)
while True:
    begun = time.monotonic()
    while time.monotonic() < begun + 0.01: pass
    time.sleep(0.01)
"""


def test_before_and_in_the_window(spawn, root_only):
    """Its class, how much it ran and for how long at a time; an ordinary thread is none."""
    before, ordinary = spawn(SPIN, "fifo"), spawn(SPIN, "other")
    scan, begun = RealTimeScan(Host(ProcFS())), time.monotonic()
    later = spawn(SPIN, "rr")
    time.sleep(0.3)
    found = {each.tid: each for each in scan.end(time.monotonic() - begun)}
    assert ordinary.pid not in found
    for process, policy in ((before, "fifo"), (later, "rr")):
        thread = found[process.pid]
        assert (thread.process.pid, thread.policy) == (process.pid, policy)
        assert 0.1 < thread.running <= 1
        assert 0.002 < thread.slice_s < 0.2
        assert thread.cpu in thread.allowed


def test_another_machine_has_none(tree):
    """PIDs of a copy are not ours."""
    root = tree({"proc/stat": "cpu0 1 0 0 0 0\n"})
    assert RealTimeScan(Host(ProcFS(str(root / "proc"), str(root)))).end(1.0) == ()
