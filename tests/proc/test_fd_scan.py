"""The walk over fd tables: processes, threads with tables of their own, and what cannot be read."""

from __future__ import annotations

import os
import subprocess
import time

import pytest
from trees import Link

from opskit.errors import BadInput
from opskit.proc.fd_scan import FdScan, FdScanner
from opskit.proc.fs import ProcFS
from opskit.proc.kernel.syscalls import same_fd_table
from opskit.proc.treefs import TreeFS

OWN_TABLE = """
import ctypes, os, sys, threading, time
os.set_inheritable(0, True)
def alone():
    assert ctypes.CDLL(None).unshare(0x400) == 0  # CLONE_FILES
    for _ in range(7): os.dup(0)
    print(threading.get_native_id(), flush=True)
    time.sleep(600)
threading.Thread(target=alone).start()
{then}
time.sleep(600)
"""
MAIN_THREAD_EXITS = "ctypes.CDLL(None).pthread_exit(None)"


def scanned(fs, pids, read=None, **options):
    """The scan of these processes; a table is (PID, TID, number of fds)."""

    def count(pid, tid, parts):
        fds = fs.fd_pairs(*parts)
        return ((pid, tid, len(fds)) if fds else None), bool(fds)

    scan = FdScan()
    FdScanner(fs, read or count, **options).scan(pids, scan)
    return scan


@pytest.mark.parametrize("options", [{"same_fd_table": same_fd_table}, {}], ids=["kcmp", "compared"])
def test_a_thread_with_a_table_of_its_own(spawn, options):
    """It is read with `threads` alone; threads that share the leader's table are not."""
    process = spawn(OWN_TABLE.format(then=""))
    fs = ProcFS()
    [(pid, tid, shared)] = scanned(fs, [process.pid]).tables
    assert (pid, tid) == (process.pid, None)
    tables = scanned(fs, [process.pid], threads=True, **options).tables
    assert tables == [(pid, None, shared), (pid, int(process.line), shared + 7)]


def test_a_process_whose_main_thread_has_exited(spawn):
    """Its table is a thread's: the directory of the process is empty."""
    process = spawn(OWN_TABLE.format(then=MAIN_THREAD_EXITS))
    while os.listdir(f"/proc/{process.pid}/fd"):
        time.sleep(0.01)
    scan = scanned(ProcFS(), [process.pid])
    assert scan.any_fd
    assert [(pid, tid) for pid, tid, _ in scan.tables] == [(process.pid, int(process.line))]


def test_processes_are_told_apart_by_outcome(spawn):
    """Read, denied, and ended."""
    process = spawn("print(); import time; time.sleep(600)")
    ended = spawn("print()")
    ended.wait()
    fs = ProcFS()

    def read(pid, _, parts):
        if pid == 1:
            raise PermissionError(13, "no")
        return fs.fd_pairs(*parts), True

    scan = scanned(fs, [process.pid, 1, ended.pid], read)
    assert (scan.scanned, scan.denied, scan.vanished, scan.garbled) == ([process.pid], [1], [ended.pid], [])


def test_a_copy(tree):
    """What is missing was not copied: denied. Garbled links count as denied too; those of a thread, too."""
    root = tree(
        {
            "proc/loadavg": "0 0 0 1/2 3\n", "proc/7/fd/0": Link("pipe:[5]"), "proc/8/comm": "x\n",
            "proc/9/comm": "x\n", "proc/9/task/10/fd/0": Link("bad"), "proc/9/fd/.keep": "",
        }
    )  # fmt: skip
    fs = TreeFS(f"{root}/proc", str(root))

    def read(pid, _, parts):
        fds = fs.fd_pairs(*parts)
        if any(target == b"bad" for _, target in fds):
            raise BadInput("fd", "garbled")
        return fds or None, bool(fds)

    scan = scanned(fs, [7, 8, 9], read)
    assert scan.tables == [[(b"0", b"pipe:[5]")]]
    assert (scan.scanned, scan.denied, scan.vanished) == ([7], [8, 9], [])
    assert [error.problem for error in scan.garbled] == ["garbled"]


def test_fds_are_listed_with_their_numbers(spawn):
    """Also a table with gaps, and one so large that its numbers are not listed but counted."""
    code = "import os, sys\nfor _ in range(100): os.dup(1)\nprint()\nsys.stdin.readline()\nos.close(50)\nprint()\nsys.stdin.read()"
    process = spawn(code, stdin=subprocess.PIPE)
    fs = ProcFS()
    fds = dict(fs.fd_pairs(process.pid))
    assert sorted(fds, key=int) == [b"%d" % fd for fd in range(103)]
    assert {fds[b"%d" % fd] for fd in range(3, 103)} == {fds[b"1"]}
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()
    del fds[b"50"]
    assert dict(fs.fd_pairs(process.pid)) == fds
    process.stdin.close()


def test_an_fd_without_a_readable_target_is_kept(tmp_path):
    """A path longer than a page: the fd counts, its target is unknown."""
    long = "x" * 250
    directory = tmp_path
    before = os.getcwd()
    try:
        for _ in range(20):
            os.chdir(directory)
            os.mkdir(long)
            directory = long
        os.chdir(long)
        fd = os.open("deep", os.O_CREAT | os.O_WRONLY)
    finally:
        os.chdir(before)
    try:
        assert dict(ProcFS().fd_pairs("self"))[b"%d" % fd] == b""
        assert b"" in ProcFS().fd_targets("self")
    finally:
        os.close(fd)
