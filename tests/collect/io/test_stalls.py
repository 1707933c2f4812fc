"""Which threads of a machine are stalled, by captured files: state D, waits for a FUSE server, one sleep or several."""

from __future__ import annotations

import platform

import pytest
from iotrees import SWITCHES, thread

from opskit.collect.io.processes import read_stats
from opskit.collect.io.stalls import Stalls
from opskit.host import Host
from opskit.proc.fs import ProcFS


@pytest.fixture
def machine(tree):
    """Write files and look, at a time; returns what is stalled: (PID, TID) -> thread."""
    root = tree({})
    host = Host(ProcFS(f"{root}/proc", str(root)))
    stalls = Stalls(host)
    stalls.begin()

    def look(files, now_s=1.0):
        tree(files)
        host.monotonic = lambda: now_s
        stalls.look(read_stats(host.fs, host.fs.pids()))
        return {(pid, each.tid): each for pid, found in stalls.threads().items() for each in found}

    return look


WAITING = {**thread(7, 7, "S", "request_wait_answer"), **thread(8, 8, "S", "do_poll.constprop.0")}


@pytest.mark.parametrize(
    ("files", "is_found"),
    [
        ({"sys/fs/fuse/connections/42/waiting": "1\n"}, True),
        ({"sys/fs/fuse/connections/42/waiting": "0\n", "sys/fs/fuse/connections/43/waiting": "2\n"}, True),
        ({"sys/fs/fuse/connections/42/waiting": "0\n"}, False),  # no server owes an answer: wchan is not even read
        ({"proc/1/mountinfo": "36 35 0:98 / /mnt rw - fuse.sshfs x rw\n"}, True),
        ({"proc/1/mountinfo": "36 35 0:98 / /sys/fs/fuse/connections rw - fusectl x rw\n"}, False),
        ({}, False),
    ],
    ids=["waiting", "one waits", "none waits", "mounted", "fusectl", "none"],
)
def test_threads_that_wait_for_fuse(machine, files, is_found):
    """Their state is S until a signal comes."""
    assert list(machine({**WAITING, **files})) == ([(7, 7)] if is_found else [])


def test_a_thread_that_waits_for_fuse_among_others(machine):
    """By its own files, where a process has several threads; the call is named."""
    files = {**thread(7, 7, "S", "futex_wait_queue", 2), **thread(7, 9, "S", "request_wait_answer", 2)}
    (found,) = machine({**files, "sys/fs/fuse/connections/42/waiting": "1\n"}).values()
    assert (found.tid, found.where) == (9, "request_wait_answer")
    if platform.machine() == "x86_64":
        assert found.call == "statx"


def test_one_sleep_and_another(machine):
    """By its context switches; where the kernel's function is `0`, it is unknown."""
    files = thread(7, 7, "D", "0")
    machine(files, now_s=10.0)
    (found,) = machine(files, now_s=12.5).values()
    assert (found.for_s, found.where) == (2.5, None)
    (found,) = machine({**files, "proc/7/task/7/status": SWITCHES.format(6)}, now_s=14.0).values()
    assert found.for_s == 0.0
    assert machine(thread(7, 7, "S", "0"), now_s=15.0) == {}
