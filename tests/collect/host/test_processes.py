"""The check `processes` on real ones: zombies, a container's PID 1 that does not reap, stopped processes."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time

import pytest
from nextsteps import try_next

from opskit.analysis.host.processes import judge
from opskit.checks.look import Look
from opskit.checks.processes import check
from opskit.collect.host.processes import Facts, Parent, Stopped, collect
from opskit.host import Host
from opskit.proc.files.stat import parse_stat, parse_terminal
from opskit.proc.fs import ProcFS

WINDOW_S = 0.02
FORKS = """
import os, sys, time
for _ in range(int(sys.argv[1])):
    if os.fork() == 0: os._exit(0)
time.sleep(0.05)
print("stands", flush=True)
time.sleep(60)
"""
PARENT = Parent(42, "app", 7, "S", False, 30, ("sh",))
STOPPED = Stopped(42, "app", 7, None, False)


def used(pid):
    """CPU time, in ticks."""
    return ProcFS().load(parse_stat, pid, "stat").user_ticks


def found(process, **look):
    """The findings about this process or its children."""
    facts = collect(Host(ProcFS()), WINDOW_S, (process.pid,), **look)
    return facts, judge(facts)


def test_zombies_of_one_parent(spawn):
    """The parent is named; a few zombies are usual, and so are children that are reaped within the window."""
    many, few = spawn(FORKS, 25), spawn(FORKS, 4)
    facts, findings = found(many)
    assert [(each.code, each.severity, each.entity.id) for each in findings] == [("zombies", "warning", many.pid)]
    assert findings[0].summary.startswith(f"25 zombies of {many.pid} (")
    assert facts.zombies >= 25
    assert found(few)[1] == []
    try_next(findings, "zombies")


def test_a_container_whose_pid_1_does_not_reap(spawn, root_only):
    """Orphans become its children: five are a note, with what to do."""
    with subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", FORKS, "6"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline() == "stands\n"
            with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
                pid = int(file.read().split()[0])
            findings = judge(collect(Host(ProcFS()), WINDOW_S, (pid,)))
        finally:
            process.kill()
    assert [(each.code, each.severity) for each in findings] == [("zombies", "note")]
    assert "docker run --init" in findings[0].summary


def test_a_stopped_process(spawn):
    """Without a terminal nobody continues it by fg."""
    process = spawn("import time; print(); time.sleep(60)", stdin=subprocess.DEVNULL)
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    _, findings = found(process)
    assert [(each.code, each.severity, each.fix) for each in findings] == [
        ("process-stopped", "warning", f"kill -CONT {process.pid}")
    ]
    try_next(findings, "process-stopped")
    os.kill(process.pid, signal.SIGCONT)
    os.waitid(os.P_PID, process.pid, os.WCONTINUED | os.WNOWAIT)
    assert found(process)[1] == []


def test_a_process_whose_cpu_use_is_limited(spawn):
    """As cpulimit does: it is stopped at both looks, and runs in between."""
    process = spawn("print()\nwhile True: pass", stdin=subprocess.DEVNULL)
    os.kill(process.pid, signal.SIGSTOP)

    def limit(_):
        before = used(process.pid)
        os.kill(process.pid, signal.SIGCONT)
        while used(process.pid) == before:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)

    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    host = Host(ProcFS())
    host.sleep = limit
    assert judge(collect(host, WINDOW_S, (process.pid,))) == []


def test_a_job_of_a_terminal():
    """Ctrl-Z is a note."""
    pid, leader = pty.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    try:
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
        findings = judge(collect(Host(ProcFS()), WINDOW_S, (pid,)))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(leader)
    assert [(each.code, each.severity) for each in findings] == [("process-stopped", "note")]
    assert "Ctrl-Z" in findings[0].summary


def test_what_comes_and_goes_is_no_finding(spawn):
    """Zombies that are reaped within the window, and others in their place."""
    code = """
import os
print(flush=True)
while True:
    for _ in range(30):
        if os.fork() == 0: os._exit(0)
    for _ in range(30): os.wait()
"""
    process = spawn(code)
    deadline = time.monotonic() + 0.3
    while time.monotonic() < deadline:
        assert found(process)[1] == []


@pytest.mark.parametrize(
    ("parent", "severity", "words"),
    [
        (PARENT, "warning", "which does not reap them"),
        (PARENT._replace(state="T"), "warning", "which is stopped by a signal"),
        (PARENT._replace(state="D"), "warning", "which is blocked in the kernel"),
        (PARENT._replace(zombies=19), None, ""),
        (PARENT._replace(zombies=5, is_init=True), "note", "which is PID 1 of its container"),
        (PARENT._replace(zombies=4, is_init=True), None, ""),
    ],
    ids=range(6),
)
def test_who_does_not_reap(parent, severity, words):
    """Twenty of one parent are a warning."""
    findings = judge(Facts(1, 30, (parent,), (), 0.5))
    assert [each.severity for each in findings] == ([severity] if severity else [])
    assert all(words in each.summary for each in findings)


@pytest.mark.parametrize(
    ("stopped", "severity"),
    [
        (STOPPED, "warning"), (STOPPED._replace(has_terminal=True), "note"), (STOPPED._replace(tracer=7), "note"),
        (STOPPED._replace(is_jvm=True), None),
    ],
    ids=["signal", "terminal", "tracer", "jvm"],
)  # fmt: skip
def test_who_stopped_it(stopped, severity):
    """JVMs are those of the check `jvms`."""
    assert [each.severity for each in judge(Facts(1, 0, (), (stopped,), 0.5))] == ([severity] if severity else [])


def test_what_was_looked_at():
    """For -v."""
    host = Host(ProcFS())
    outcome = check(Look(host, (os.getpid(),), WINDOW_S))
    assert outcome.looked_at[0].endswith(" processes")
    assert not outcome.findings


def test_the_controlling_terminal():
    """Field 7 of stat; None where it is cut short."""
    assert parse_terminal("4242 (a b) c) S 1 4242 4242 34816 4242 1077936384 1") == 34816
    assert parse_terminal("4242 (x) S 1 4242 4242 0 -1 1077936384 1") == 0
    assert parse_terminal("4242 (x) S 1 4242") is None
