"""CPU time of each thread, by its id in the JVM's PID namespace."""

from __future__ import annotations

import os
import threading
import time

import pytest

from opskit.proc.fs import ProcFS
from opskit.proc.thread_cpu import ThreadCpu

STAT = "8 (GC Thread#0) S 1 7 7 0 -1 0 0 0 0 0 310 45 0 0 20 0 2 0 42 0 0 0 0 0 0"


def test_threads_of_another_pid_namespace_go_by_their_inner_ids(tree):
    """A JVM in a container prints nid=1 for thread 4243 of the host; without schedstat, stat is read."""
    root = tree(
        {
            "proc/7/status": "Name:\tjava\nNSpid:\t7\t1\n",
            "proc/7/task/7/status": "NSpid:\t7\t1\n",
            "proc/7/task/7/schedstat": "2000000 5000000 1\n",
            "proc/7/task/8/status": "NSpid:\t8\t2\n",
            "proc/7/task/8/stat": STAT,
            "proc/7/task/8/comm": "GC Thread#0\n",
            "proc/7/task/9/status": "NSpid:\t9\t3\n",  # ended just now
        }
    )
    cpu = ThreadCpu(ProcFS(f"{root}/proc", str(root)), 7, 100)
    assert cpu.read() == ({1: 2.0, 2: 3550.0}, {1: 5.0})
    assert cpu.names([2, 99]) == {2: "GC Thread#0"}


def test_a_process_that_has_ended_has_no_threads(tree):
    """It may end between any two reads."""
    root = tree({"proc/7/stat": STAT})
    cpu = ThreadCpu(ProcFS(f"{root}/proc", str(root)), 8, 100)
    assert (cpu.read(), cpu.names([8])) == (({}, {}), {})


def test_a_real_thread_that_burns():
    """A thread's CPU time equals the one that it measures itself."""
    done, ready, used = threading.Event(), threading.Event(), {}

    def burn():
        while time.thread_time() < 0.05:
            pass
        used[threading.get_native_id()] = time.thread_time() * 1000
        ready.set()
        done.wait()

    thread = threading.Thread(target=burn)
    thread.start()
    try:
        assert ready.wait(120)
        read = ThreadCpu(ProcFS(), os.getpid(), os.sysconf("SC_CLK_TCK")).read().used_ms
    finally:
        done.set()
        thread.join()
    [(tid, burned)] = used.items()
    assert read[tid] == pytest.approx(burned, abs=20)
    assert ThreadCpu(ProcFS(), os.getpid(), 100).read().used_ms.keys() >= {os.getpid()}
