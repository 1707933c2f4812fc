"""Processes to which opskit attaches: running HotSpot JVMs of our PID namespace."""

from __future__ import annotations

import signal
import time

import pytest
from attaching import assert_unharmed, client, refused
from cgroups import frozen

from opskit.errors import AttachError, NoSuchProcess, NotAJvm, NotPermitted
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.attach.target import reduced_signals
from opskit.jvm.launch import major_of
from opskit.proc.fs import ProcFS

APP, OTHER = 1234, 1235


def test_another_users_jvm(workload, as_user):
    """Only the owner and root may attach; nothing is sent, and the message names the user."""
    running = workload(user=APP, group=APP)
    with pytest.raises(AttachError, match=f"runs as uid {APP}"):
        as_user(OTHER, lambda: client(running).thread_dump())
    assert "main" in as_user(APP, lambda: client(running).thread_dump())
    with pytest.raises(AttachError, match=f"runs as uid {APP}"):
        as_user(OTHER, lambda: client(running).thread_dump())
    assert_unharmed(running)


def test_a_stopped_jvm(workload):
    """It would accept the connection and never answer: an error at once, with the command to resume it."""
    running = workload()
    running.signal(signal.SIGSTOP)
    begun = time.monotonic()
    with refused("stopped", f"kill -CONT {running.pid}"):
        client(running).thread_dump()
    assert time.monotonic() - begun < 30
    running.signal(signal.SIGCONT)
    assert "main" in client(running).thread_dump()


def test_a_frozen_jvm(workload, root_only):
    """A paused container: the error names the frozen cgroup."""
    running = workload()
    with frozen(running.pid), refused("stopped", "frozen with its cgroup"):
        client(running).thread_dump()
    assert "main" in client(running).thread_dump()


def test_no_such_process_and_no_jvm(spawn):
    """A PID without a process, and one of another program: nothing is sent."""
    other = spawn("import time; print('up', flush=True); time.sleep(1000)")
    with pytest.raises(NotAJvm, match="not a JVM"):
        AttachClient(ProcFS(), other.pid).thread_dump()
    with pytest.raises(NoSuchProcess):
        AttachClient(ProcFS(), 2**22 - 1).thread_dump()
    assert other.poll() is None


def test_the_pid_of_another_namespace_is_refused(tree):
    """A tree that is not our own PID namespace's: nothing is sent."""
    root = tree({"proc/4242/stat": "4242 (java) S 1"})
    with pytest.raises(NotPermitted, match=r"another pid namespace.*Nothing was sent"):
        AttachClient(ProcFS(str(root / "proc"), str(root)), 4242).thread_dump()


@pytest.mark.parametrize(
    ("words", "environment", "reduced"),
    [
        (["java", "-Xrs", "Main"], [], True),
        (["java", "Main"], ["JAVA_TOOL_OPTIONS=-Xmx1g -Xrs"], True),
        (["java", "-XX:+ReduceSignalUsage", "Main"], [], True),
        (["java", "-XX:+ReduceSignalUsage", "-XX:-ReduceSignalUsage", "Main"], [], False),
        (["java", "-jar", "app.jar", "-Xrs"], [], False),
        (["java", "Main"], ["OTHER_OPTIONS=-Xrs", "NOTE=OPTIONS= -Xrs"], False),
    ],
)
def test_reduced_signals(words, environment, reduced):
    """By the JVM's own options, not by the application's arguments or other variables."""
    assert reduced_signals(words, environment) == reduced


@pytest.mark.parametrize(
    ("version", "major"),
    [("1.8", 8), ("1.8.0_402", 8), ("11", 11), ("17.0.15", 17), ("21-ea", 21), ("25.0.2", 25), ("", None), ("x", None)],
)
def test_major_versions(version, major):
    """Of specification versions and release files."""
    assert major_of(version) == major
