"""The listener is started where that is safe; otherwise no signal is sent."""

from __future__ import annotations

import os
import socket
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from attaching import assert_unharmed, client, refused, socket_of, triggers_of

from opskit.errors import NotAJvm
from opskit.jvm.attach.client import AttachClient
from opskit.proc.fs import ProcFS


def test_an_orphan_is_replaced(fake_jvm):
    """A socket without a listening process, and no listener thread: the JVM is made to start its own."""
    fake = fake_jvm("v1")
    with socket.socket(socket.AF_UNIX) as orphan:
        orphan.bind(f"/tmp/.java_pid{fake.pid}")
    assert "main" in client(fake).thread_dump()


def ask_anew(pid):
    return "main" in AttachClient(ProcFS(), pid, 60.0).thread_dump()


@pytest.mark.parametrize("orphan", [False, True])
def test_many_clients_at_once(fake_jvm, orphan):
    """Clients that start the listener together all get their dump by one signal, and no dump is printed to the output.

    The same with a stale socket at its path.
    """
    fake = fake_jvm("v1")
    if orphan:
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(f"/tmp/.java_pid{fake.pid}")

    with ProcessPoolExecutor(6, get_context("fork")) as clients:  # processes: threads would take turns
        assert all(each.result() for each in [clients.submit(ask_anew, fake.pid) for _ in range(6)])
    assert "dump" not in fake.output().splitlines()
    assert fake.output().count("quit") == 1
    assert not any(map(os.path.lexists, triggers_of(fake)))


def test_a_read_only_tmp(workload, root_only):
    """The JVM cannot make its socket: no signal is sent."""
    script = 'mount -t tmpfs tmpfs /tmp && mount -o remount,ro /tmp && exec "$@"'
    running = workload(wrapper=("unshare", "--mount", "sh", "-c", script, "sh"))
    with refused("tmp", "read-only"):
        client(running).thread_dump()
    assert_unharmed(running)


def test_a_tmp_that_its_user_may_not_write_to(workload, root_only, tmp_path):
    """The trigger in the cwd would be taken, and the socket fail: no signal is sent."""
    script = 'mount -t tmpfs -o mode=0755 tmpfs /tmp && exec setpriv --reuid=1234 --regid=1234 --clear-groups "$@"'
    running = workload(wrapper=("unshare", "--mount", "sh", "-c", script, "sh"))
    with refused("tmp", "may not write to"):
        client(running).thread_dump()
    assert_unharmed(running)


def test_a_full_tmp(workload, root_only):
    """No inode is left for the socket: no signal is sent."""
    script = 'mount -t tmpfs -o nr_inodes=2 tmpfs /tmp && touch /tmp/x && exec "$@"'
    running = workload(wrapper=("unshare", "--mount", "sh", "-c", script, "sh"))
    with refused("tmp", "full"):
        client(running).thread_dump()
    assert_unharmed(running)


def test_a_deleted_socket(workload, jvm_version):
    """17 and later recreate it; 11 does not: no signal is sent, and the error says that only a restart helps."""
    running = workload("sleep=1", version=jvm_version)
    asked = client(running)
    asked.thread_dump()
    os.unlink(socket_of(running))
    if jvm_version == 11:
        with refused("needs-restart", "only a restart"):
            asked.thread_dump()
    else:
        assert '"sleep-0"' in asked.thread_dump()
    assert_unharmed(running)


def test_an_orphan_without_a_listener(workload, jvm_version):
    """A stale socket, and a JVM that was never attached to: it makes its own."""
    running = workload("sleep=1", version=jvm_version)
    with socket.socket(socket.AF_UNIX) as orphan:
        orphan.bind(socket_of(running))
    assert '"sleep-0"' in client(running).thread_dump()
    assert_unharmed(running)


def test_an_orphan_over_a_living_listener(workload, jvm_version):
    """The JVM sees a file there, and would print a dump into its output: no signal is sent."""
    running = workload(version=jvm_version)
    asked = client(running)
    asked.thread_dump()
    os.unlink(socket_of(running))
    with socket.socket(socket.AF_UNIX) as orphan:
        orphan.bind(socket_of(running))
    with refused("socket-orphaned", "hsperf-check"):
        asked.thread_dump()
    assert_unharmed(running)


@pytest.mark.parametrize("more", [(), ("-XX:-UsePerfData",)], ids=["by its counters", "by its command line"])
def test_attach_disabled(workload, jvm_version, more):
    """SIGQUIT would print a dump: it is not sent."""
    running = workload(version=jvm_version, options=("-XX:+DisableAttachMechanism", *more))
    with refused("disabled", "DisableAttachMechanism"):
        client(running).thread_dump()
    assert_unharmed(running)


def test_xrs(workload, jvm_version):
    """With -Xrs the socket is there from the start; where it was deleted, a SIGQUIT would kill: it is not sent."""
    running = workload("sleep=1", version=jvm_version, options=("-Xrs",))
    asked = client(running)
    assert '"sleep-0"' in asked.thread_dump()
    os.unlink(socket_of(running))
    with refused("no-signal-handler", "-Xrs"):
        asked.thread_dump()
    assert_unharmed(running)


@pytest.mark.parametrize("options", [(), ("-Xrs",)])
def test_a_jvm_that_is_starting(workload, jvm_version, options):
    """A client waits for a JVM that is starting, without killing it."""
    running = workload("sleep=1", version=jvm_version, options=options, ready=False)
    deadline = time.monotonic() + 60
    while True:
        try:
            assert "Full thread dump" in client(running).thread_dump()
            break
        except NotAJvm:  # still the launcher, before it has loaded libjvm
            assert time.monotonic() < deadline
    running.wait_ready()
    assert_unharmed(running)


def test_no_signal_before_a_starting_jvm_has_cleaned_up(workload):
    """It would delete the socket that its own listener has just made, and have none: its Service Thread comes after that."""
    running = workload("sleep=1")
    signalled = []

    class Early(ProcFS):
        def tids(self, pid):
            signalled.append(any(map(os.path.lexists, triggers_of(running))))
            return super().tids(pid) if len(signalled) > 5 else []  # those come later

    assert '"sleep-0"' in AttachClient(Early(), running.pid, 60.0).thread_dump()
    assert signalled[:6] == [False] * 6
    assert_unharmed(running)


def test_another_client_starts_the_listener_meanwhile(workload, jvm_version):
    """A listener that started between two reads is making its socket, and has not lost it."""
    running = workload("sleep=1", version=jvm_version)
    looks = []

    class Between(ProcFS):
        def tids(self, pid):
            looks.append(pid)
            if len(looks) == 1:
                return []  # not there yet
            client(running).thread_dump()
            return super().tids(pid)

    assert '"sleep-0"' in AttachClient(Between(), running.pid, 60.0).thread_dump()
    assert_unharmed(running)
