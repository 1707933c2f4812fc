"""A JVM without free file descriptors: nothing is sent to it, and the printed command makes it attachable."""

from __future__ import annotations

import os
import re
import resource
import shlex
import socket
import subprocess
import time

from attaching import assert_unharmed, client, refused, socket_of

from opskit.jvm.attach.descriptors import shortage
from opskit.jvm.attach.target import has_listener
from opskit.proc.fs import ProcFS
from opskit.proc.open_files import open_files

NOFILE = resource.RLIMIT_NOFILE


def limit(running, soft):
    """Set the soft limit; return the limits before."""
    before = resource.prlimit(running.pid, NOFILE)
    resource.prlimit(running.pid, NOFILE, (soft, before[1]))
    return before


def taken(running):
    return open_files(ProcFS(), running.pid).taken


def printed_prlimit(error):
    """The words of the prlimit command in an error."""
    return shlex.split(re.search(r"`([^`]*prlimit [^`]*)`", str(error.value))[1])


def test_without_a_free_descriptor(workload, jvm_version):
    """It is told before any signal, for a JVM that listens already too; after the very command that is printed, it answers."""
    running = workload("sleep=1", version=jvm_version, options=("-Xmx64m",))
    number = taken(running)
    _, hard = limit(running, number)
    says = rf"no file descriptor left \({number} of {number}\): `prlimit --pid {running.pid} --nofile={max(2 * number, number + 64)}:{hard}`"
    with refused("no-fds", rf"{says}, or `kill -3 {running.pid}` and read its stdout") as error:
        client(running).thread_dump()
    assert error.value.lines[0].startswith(f"`kill -3 {running.pid}` prints a thread dump to its stdout, a pipe; ")
    assert_unharmed(running)
    assert not os.path.lexists(socket_of(running))
    subprocess.run(printed_prlimit(error), check=True)
    assert "sleep-0" in client(running).thread_dump()

    limit(running, taken(running))
    with refused("no-fds", "no file descriptor left") as error:
        client(running).thread_dump()
    assert has_listener(ProcFS(), running.pid)
    subprocess.run(printed_prlimit(error), check=True)
    assert "sleep-0" in client(running).thread_dump()


def test_one_descriptor_is_enough_for_a_listener_only(workload):
    """A JVM without a socket needs two: one for it, one for the connection."""
    running = workload("sleep=1", options=("-Xmx64m",))
    before = limit(running, taken(running) + 1)
    with refused("no-fds", r"1 file descriptor left .*, and attaching takes 2: `prlimit"):
        client(running).thread_dump()
    resource.prlimit(running.pid, NOFILE, before)
    client(running).thread_dump()
    limit(running, taken(running) + 1)
    assert "sleep-0" in client(running).thread_dump()


def test_a_limit_below_open_descriptors(workload):
    """Those above a lowered limit take no place: it is free numbers that count."""
    running = workload("sleep=1", options=("-Xmx64m",))
    number = taken(running)
    limit(running, number - 2)
    found = open_files(ProcFS(), running.pid)
    assert (found.taken, found.free) == (number - 2, 0)
    assert shortage(ProcFS(), running.pid, listens=False).why.startswith("no file descriptor left")


def test_a_listener_that_has_ended(workload, inprocess, jvm_version):
    """Its socket still takes connections. From JDK 14 on it is started again; before, only a restart helps."""
    running = workload("sleep=1", version=jvm_version, options=("-Xmx64m",))
    client(running).thread_dump()
    before = limit(running, taken(running) - 1)  # the waiting accept(2) has the last one; the next finds none
    with socket.socket(socket.AF_UNIX) as visitor:
        visitor.connect(socket_of(running))
    deadline = time.monotonic() + 30
    while has_listener(ProcFS(), running.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    resource.prlimit(running.pid, NOFILE, before)
    checked = inprocess("hsperf-check", running.pid, "-f", "text")
    assert "error attach-listener-ended" in checked.out
    listed = inprocess("jvms", running.pid, "-f", "text")
    if jvm_version < 14:
        assert "  no:needs-restart  " in listed.out
        with refused("needs-restart", "listener has ended .*only a restart") as error:
            client(running, 5).thread_dump()
        assert "kill -3" in error.value.lines[0]
        return
    assert "  yes  " in listed.out
    assert "sleep-0" in client(running).thread_dump()
    assert has_listener(ProcFS(), running.pid)
    assert_unharmed(running)


def test_every_command_names_it(workload, inprocess):
    """In jvms attach is no, hsperf-check finds an error with the command, jmap-diff and jpmp end with it: none says `all well`."""
    running = workload("sleep=1", options=("-Xmx64m",))
    number = taken(running)
    limit(running, number)
    left = f"no file descriptor left ({number} of {number})"
    listed = inprocess("jvms", running.pid, "-f", "text")
    assert "  no:no-fds  " in listed.out
    assert left in listed.err
    checked = inprocess("hsperf-check", running.pid, "-f", "text")
    assert checked.code == 1
    assert f"error attach-no-descriptor ({running.pid}): {left}" in checked.out
    assert f"  fix: prlimit --pid {running.pid} --nofile=" in checked.out
    assert "all well" not in checked.out
    assert "works" not in checked.out
    for words in (("jpmp", running.pid, "1"), ("jmap-diff", running.pid, "-c", "2", "-i", "1s")):
        done = inprocess(*words)
        assert done.code == 2
        assert left in done.err
        assert f"`kill -3 {running.pid}` prints a thread dump to its stdout, a pipe" in done.err
    assert_unharmed(running)
