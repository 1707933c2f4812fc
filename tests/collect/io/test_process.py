"""One process over a window: who may be read, threads that come and go, watches, JVMs in containers."""

from __future__ import annotations

import os
import time
from pathlib import Path

import jvms
import pytest

from opskit.collect.io.collect import Collector
from opskit.collect.io.facts import Request
from opskit.errors import NoSuchProcess, NotPermitted, NotSupported
from opskit.host import Host
from opskit.proc.fs import ProcFS
from opskit.proc.treefs import TreeFS

NOBODY = 65534
WINDOW_S = 0.4


def look(pid, window_s=WINDOW_S, **how):
    return Collector(Host(ProcFS()), Request(pid, window_s, **how)).look()


READER = """
import os, sys, threading, time
def read(path):
    fd = os.open(path, os.O_RDONLY)
    while True:
        for _ in range(20):
            if not os.read(fd, 100): os.lseek(fd, 0, 0)
        time.sleep(0.002)
for number in range(int(sys.argv[2])): threading.Thread(target=read, args=(sys.argv[1],), daemon=True).start()
print(flush=True)
time.sleep(600)
"""


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"x" * (1 << 20))
    return path


def test_threads_and_their_files(spawn, lines):
    """Each thread by itself, with its file by equal steps; what they do together is what the process does."""
    facts = look(spawn(READER, lines, 3).pid)
    assert len(facts.threads) == 3
    assert {round(each.rates.bytes_per_read) for each in facts.threads} == {100}
    assert facts.total.reads == pytest.approx(sum(each.rates.reads for each in facts.threads), rel=0.05)
    assert (facts.thread_total, facts.is_jvm, facts.asked) == (4, False, False)
    assert [file.path for file in facts.files] == [str(lines)] * 3
    assert all(file.moved_bytes for file in facts.files)
    assert facts.looks > 3
    for thread in facts.threads:
        assert thread.looks
        assert None not in (thread.user, thread.system, thread.major_faults)
        assert {each.call for each in thread.seen} <= {
            "clock_nanosleep",
            "nanosleep",
            "select",
            "pselect6",
            "running",
            "futex",
            "read",
        }
    assert facts.cgroup is not None
    assert facts.dirty_bytes is not None
    assert not facts.missing


def test_a_watch_leaves_nothing_out(spawn, lines):
    """Each window begins where the last one ended; a thread that began to read is found in the next one."""
    process = spawn(READER, lines, 1)
    host = Host(ProcFS())
    collector = Collector(host, Request(process.pid, WINDOW_S), watch=True)
    begun_s, before = host.monotonic(), reads_of(process.pid)
    windows = [collector.look() for _ in range(3)]
    passed_s, calls = host.monotonic() - begun_s, reads_of(process.pid) - before
    assert sum(each.window_s for each in windows) == pytest.approx(passed_s, rel=0.2)
    assert sum(each.total.reads * each.window_s for each in windows) == pytest.approx(calls, rel=0.2)
    assert all(each.threads[0].looks for each in windows)
    process.kill()
    process.wait()
    with pytest.raises(NoSuchProcess, match="it ended while it was watched"):
        collector.look()


def reads_of(pid):
    return int(Path(f"/proc/{pid}/io").read_text().split("syscr: ")[1].split()[0])


def test_threads_that_start_and_end(spawn, lines):
    """What ended is in the process's own counters; what started is marked."""
    process = spawn(
        """
import os, sys, threading, time
def read(part):
    fd = os.open(sys.argv[1], os.O_RDONLY)
    end = time.monotonic() + part
    while time.monotonic() < end: os.read(fd, 10)
    os.close(fd)
print(flush=True)
while True:
    thread = threading.Thread(target=read, args=(0.15,)); thread.start(); thread.join()
""",
        lines,
    )
    for _ in range(5):
        facts = look(process.pid)
        if facts.ended is not None and any(thread.started for thread in facts.threads):
            break
    assert facts.ended.reads > 0
    (thread,) = [each for each in facts.threads if each.started]
    assert thread.rates.reads <= facts.total.reads * 1.05


def test_a_process_that_may_not_be_read(spawn, as_user):
    """Its counters need its own user or root; what to type is told."""
    process = spawn("import time; print(flush=True); time.sleep(600)")
    with pytest.raises(
        NotPermitted,
        match=rf"cannot read the I/O counters of {process.pid} \(python\S*, user root\): permission denied; ",
    ):
        as_user(NOBODY, lambda: look(process.pid, 0.05))


def test_calls_that_may_not_be_read(spawn, lines, monkeypatch):
    """Yama or a lost capability hides the calls, not the counters: that is told, and the rest stands."""
    process = spawn(READER, lines, 1)
    fs = ProcFS()
    read = fs.read_path

    def refuse(path, *limit):
        if path.endswith("/syscall"):
            raise PermissionError(1, "Operation not permitted", path)
        return read(path, *limit)

    monkeypatch.setattr(fs, "read_path", refuse)
    facts = Collector(Host(fs), Request(process.pid, WINDOW_S)).look()
    assert facts.threads[0].rates.reads > 0
    assert {each.call for each in facts.threads[0].seen} <= {"running"}
    assert [
        line
        for line in facts.missing
        if line.startswith("the system calls of its threads are unknown: permission denied")
    ]


def test_what_is_no_running_process(tree):
    """A PID that does not exist, a process that ends in the window, a copy."""
    host = Host(ProcFS())
    with pytest.raises(NoSuchProcess):
        Collector(host, Request((1 << 31) - 2, WINDOW_S))
    root = tree(
        {"proc/7/stat": "7 (x) S 1 7 7 0 -1 0 0 0 0 0 310 45 0 0 20 0 2 0 42 0 0", "proc/7/io": "rchar: 5\nwchar: 0\n"}
    )
    with pytest.raises(NotSupported, match="is a copy, which has no rates"):
        Collector(Host(TreeFS(f"{root}/proc", str(root))), Request(7, WINDOW_S))


@pytest.mark.parametrize("reaped", [True, False], ids=["reaped", "zombie"])
def test_a_process_that_ends_in_the_window(spawn, reaped):
    """One line says so."""
    process = spawn("import sys; print(flush=True); sys.stdin.readline()", stdin=-1)
    host = Host(ProcFS())
    host.monotonic = lambda: 10 * time.monotonic()
    collector = Collector(host, Request(process.pid, 5.0))
    sleep = host.sleep

    def end(seconds):
        if not process.stdin.closed:
            process.stdin.close()
            os.waitid(os.P_PID, process.pid, os.WEXITED | (0 if reaped else os.WNOWAIT))
        sleep(min(seconds, 0.01))

    host.sleep = end
    with pytest.raises(NoSuchProcess, match="ended"):
        collector.look()


def test_a_kernel_that_counts_nothing(spawn, monkeypatch):
    """Without CONFIG_TASK_IO_ACCOUNTING there is no such file."""
    process = spawn("import time; print(flush=True); time.sleep(600)")
    fs = ProcFS()
    read = fs.read_at

    def absent(path, offset, size):
        if path.endswith("/io"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return read(path, offset, size)

    monkeypatch.setattr(fs, "read_at", absent)
    with pytest.raises(NotSupported, match="CONFIG_TASK_IO_ACCOUNTING"):
        Collector(Host(fs), Request(process.pid, 0.05)).look()


def test_a_jvm_in_a_container(lines):
    """Its dump has the TIDs of its own PID namespace. In a watch there is one dump: each pauses the JVM."""
    unshare = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    jvm = jvms.run([*unshare, jvms.java(17), "-Xmx64m", "-cp", jvms.classes(), "ReadLines", str(lines)])
    try:
        assert os.readlink("/proc/self/ns/pid") != os.readlink(f"/proc/{jvm.pid}/ns/pid")
        collector = Collector(Host(ProcFS()), Request(jvm.pid, WINDOW_S, ask=True), watch=True)
        first, second = collector.look(), collector.look()
        for facts in (first, second):
            assert (facts.is_jvm, facts.asked, facts.missing) == (True, True, ())
            worker = max(facts.threads, key=lambda thread: thread.rates.reads)
            assert worker.name == "csv-import-worker-1"  # longer than the kernel's name of it
        assert any("RandomAccessFile.readLine" in frame for frame in worker.frames)
    finally:
        jvm.stop()


def test_a_jvm_that_gives_no_dump(workload):
    """Why is told; the threads have the kernel's names."""
    jvm = workload("sleep=1", options=("-Xmx64m", "-XX:+DisableAttachMechanism"))
    facts = look(jvm.pid, ask=True)
    assert facts.missing
    assert f"no thread dump of {jvm.pid}" in facts.missing[0]
