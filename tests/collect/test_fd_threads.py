"""Threads that wait on sockets: of a Python program, and of real JVMs with their Java stacks."""

from __future__ import annotations

import os
import time

from opskit.collect.fd_threads import waiting_threads
from opskit.host import Host
from opskit.proc.fs import ProcFS

HOST = Host(ProcFS())


def sockets(pid):
    """The fds of a process that are sockets."""
    targets = {int(fd): os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    return [fd for fd, target in targets.items() if target.startswith("socket:")]


def waiting(pid, ask, problems=None, at_least=1):
    """What is found, as soon as so many threads wait."""
    deadline = time.monotonic() + 30
    while len(found := waiting_threads(HOST, pid, sockets(pid), ask, problems)) < at_least:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found


def test_java_threads_in_a_socket_read(workload, jvm_version):
    """Unasked the thread's name is all there is; with a dump it has its whole name and its stack."""
    jvm = workload("socket=2", version=jvm_version)
    unasked = waiting(jvm.pid, False, at_least=2)
    assert {thread.name for thread in unasked} == {"socket-0", "socket-1"}
    assert not any(thread.frames for thread in unasked)
    problems = []
    asked = waiting(jvm.pid, True, problems, at_least=2)
    # The attach listener may have begun to wait in accept() meanwhile.
    java = [thread for thread in asked if thread.name.startswith("socket-")]
    assert len({thread.fd for thread in java}) == 2
    assert len({thread.tid for thread in java}) == 2
    for thread in java:
        assert thread.among == 1
        assert thread.call in ("read", "recvfrom", "poll", "ppoll")
        assert any("Socket" in frame for frame in thread.frames)
        assert any(frame.startswith("Workload") for frame in thread.frames)
    assert not problems


def test_a_dump_that_is_refused(workload):
    """The threads are named all the same, and the reason is told."""
    jvm = workload("socket=1", options=("-Xmx64m", "-XX:+DisableAttachMechanism"))
    problems = []
    (thread,) = [each for each in waiting(jvm.pid, True, problems) if each.name.startswith("socket-")]
    assert thread.frames == ()
    assert problems
    assert f"no thread dump of {jvm.pid}" in problems[0]


def test_a_process_that_is_no_jvm(spawn):
    """Its threads have the kernel's names; nothing is asked. Of several fds of one poll each is named."""
    process = spawn("""
import select, socket
pairs = [socket.socketpair() for _ in range(2)]
poll = select.poll()
for one, _ in pairs: poll.register(one, select.POLLIN)
print("ready")
poll.poll(600_000)
""")
    problems = []
    first, second = waiting(process.pid, True, problems, at_least=2)
    assert first.fd < second.fd
    assert (first.tid, first.among, first.frames) == (second.tid, 2, ()) == (process.pid, 2, ())
    assert not problems
    assert waiting_threads(HOST, process.pid, [], True) == ()
    assert waiting_threads(HOST, (1 << 31) - 2, [3], True) == ()
