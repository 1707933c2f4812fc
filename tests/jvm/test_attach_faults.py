"""Each way to fail, brought about for real on real JVMs, is its own error with its own advice; and nothing is harmed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import jvms
import pytest

from opskit import errors
from opskit.jvm.attach import wire as attachwire
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.perfdata.hsperfdata import parse_hsperfdata
from opskit.proc.fs import ProcFS

APP, OTHER = 1234, 1235
UNSHARED = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
OWN_TMP = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /tmp && exec "$@"', "sh")


def client(running, timeout_s=60.0):
    return AttachClient(ProcFS(), running.pid, timeout_s)


def socket_of(running):
    return f"/tmp/.java_pid{running.pid}"


def assert_unharmed(running):
    """It lives, and nothing was printed into its output."""
    time.sleep(0.05)
    assert not running.has_ended()
    assert "Full thread dump" not in running.output()


def test_another_users_jvm(workload, as_user):
    """Only the owner and root may attach; nothing is sent, and the message says whom to be."""
    running = workload(user=APP, group=APP)
    with pytest.raises(errors.NotPermitted, match=f"(?s)uid {APP}"):
        as_user(OTHER, lambda: client(running).thread_dump())
    assert "main" in as_user(APP, lambda: client(running).thread_dump())
    with pytest.raises(errors.NotPermitted, match=f"(?s)uid {APP}"):
        as_user(OTHER, lambda: client(running).thread_dump())
    assert_unharmed(running)


def test_the_same_user_with_another_group(workload, as_user):
    """The JVM wants uid and gid: it closes without a word, and opskit says which gid it wants."""
    running = workload(user=APP, group=APP)
    client(running).thread_dump()
    with pytest.raises(errors.AttachRefused, match=f"gid {OTHER}, it runs as uid {APP} gid {APP}"):
        as_user(APP, lambda: client(running).thread_dump(), gid=OTHER)


def test_a_stopped_jvm(workload):
    """It would accept the connection and never answer: told at once, with what to do."""
    running = workload()
    running.signal(signal.SIGSTOP)
    while "T (stopped)" not in Path(f"/proc/{running.pid}/status").read_text():
        time.sleep(0.01)
    begun = time.monotonic()
    with pytest.raises(errors.AttachStopped, match=f"kill -CONT {running.pid}"):
        client(running).thread_dump()
    assert time.monotonic() - begun < 30
    running.signal(signal.SIGCONT)
    assert "main" in client(running).thread_dump()


def test_a_frozen_jvm(workload, frozen):
    """A paused container: its cgroup is frozen, and says so."""
    running = workload()
    with frozen(running.pid), pytest.raises(errors.AttachStopped, match="frozen with its cgroup"):
        client(running).thread_dump()
    assert "main" in client(running).thread_dump()


@pytest.fixture
def frozen(root_only):
    """A function that freezes a process in a cgroup of its own, of version 1 or 2, while a block runs."""

    @contextlib.contextmanager
    def freeze(pid):
        old = Path("/sys/fs/cgroup/freezer").is_dir()
        cgroup = Path("/sys/fs/cgroup", *(["freezer"] if old else []), f"opskit-test-{pid}")
        try:
            cgroup.mkdir()
        except OSError:
            pytest.skip("no cgroup can be made here")
        home = cgroup.parent / "cgroup.procs"
        switch, on, off = (
            (cgroup / "freezer.state", "FROZEN", "THAWED") if old else (cgroup / "cgroup.freeze", "1", "0")
        )
        state = switch if old else cgroup / "cgroup.events"
        try:
            (cgroup / "cgroup.procs").write_text(str(pid))
            switch.write_text(on)
            while on not in state.read_text().replace("frozen 1", "1"):
                time.sleep(0.01)
            yield
        finally:
            switch.write_text(off)
            home.write_text(str(pid))
            deadline = time.monotonic() + 30
            while cgroup.exists() and time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    cgroup.rmdir()
                time.sleep(0.01)

    return freeze


@pytest.mark.parametrize("user", [None, APP])
def test_own_pid_and_mount_namespace(workload, jvm_version, root_only, user):
    """Its pid inside is another, and its /tmp is its own: reached through /proc/PID/root, from outside."""
    become = () if user is None else ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")
    tmp = (*OWN_TMP[:-2], 'mount -t tmpfs -o mode=1777 tmpfs /tmp && exec "$@"', "sh")
    running = workload("sleep=1", version=jvm_version, wrapper=(*tmp, *UNSHARED, *become))
    asked = client(running)
    assert '"sleep-0"' in asked.thread_dump()
    assert asked.target.ns_pid != running.pid
    inside = os.listdir(f"/proc/{running.pid}/root/tmp")
    assert f".java_pid{asked.target.ns_pid}" in inside
    assert f".attach_pid{asked.target.ns_pid}" not in inside
    assert_unharmed(running)


def test_a_user_namespace(workload, root_only):
    """Root outside is nobody inside: opskit comes with the ids that the JVM has out here."""
    if not _can_unshare_user():
        pytest.skip("user namespaces are not allowed here")
    running = workload("sleep=1", user=APP, group=APP, wrapper=("unshare", "--user", "--map-root-user"))
    assert '"sleep-0"' in client(running).thread_dump()


def _can_unshare_user():
    return (
        subprocess.run(
            ["unshare", "--user", "--map-root-user", "true"], stderr=subprocess.DEVNULL, check=False
        ).returncode
        == 0
    )


def test_two_that_share_a_tmp_and_an_inner_pid(workload, root_only):
    """The later listener takes the name: the earlier JVM is not answered for by the other one."""
    first = workload("sleep=1", wrapper=UNSHARED)
    second = workload("sleep=2", wrapper=UNSHARED)
    asked_first, asked_second = client(first), client(second)
    assert asked_first.target.ns_pid == asked_second.target.ns_pid
    try:
        assert '"sleep-1"' not in asked_first.thread_dump()
        with pytest.raises(errors.AttachSocketForeign, match=f"belongs to process {first.pid}") as caught:
            asked_second.thread_dump()
        assert caught.value.peer == first.pid
        assert_unharmed(second)
    finally:
        os.unlink(f"/tmp/{asked_first.target.socket_name}")


def test_a_read_only_tmp(workload, root_only):
    """The JVM cannot make its socket: no signal is sent."""
    script = 'mount -t tmpfs tmpfs /tmp && mount -o remount,ro /tmp && exec "$@"'
    running = workload(wrapper=("unshare", "--mount", "sh", "-c", script, "sh"))
    with pytest.raises(errors.AttachTmp, match="read-only"):
        client(running).thread_dump()
    assert_unharmed(running)


def test_a_tmp_that_its_user_may_not_write_to(workload, root_only, tmp_path):
    """The trigger in the cwd would be taken, and the socket fail: no signal is sent."""
    script = 'mount -t tmpfs -o mode=0755 tmpfs /tmp && exec setpriv --reuid=1234 --regid=1234 --clear-groups "$@"'
    running = workload(wrapper=("unshare", "--mount", "sh", "-c", script, "sh"))
    with pytest.raises(errors.AttachTmp, match="may not write to"):
        client(running).thread_dump()
    assert_unharmed(running)


def test_a_full_tmp(workload, root_only):
    """No inode is left for the socket: no signal is sent."""
    script = 'mount -t tmpfs -o nr_inodes=2 tmpfs /tmp && touch /tmp/x && exec "$@"'
    running = workload(wrapper=("unshare", "--mount", "sh", "-c", script, "sh"))
    with pytest.raises(errors.AttachTmp, match="full"):
        client(running).thread_dump()
    assert_unharmed(running)


def test_a_deleted_socket(workload, jvm_version):
    """17 and later make it again; 11 does not: there no signal is sent, and the verdict is a restart."""
    running = workload("sleep=1", version=jvm_version)
    asked = client(running)
    asked.thread_dump()
    os.unlink(socket_of(running))
    if jvm_version == 11:
        with pytest.raises(errors.AttachNeedsRestart, match="only a restart"):
            asked.thread_dump()
    else:
        assert '"sleep-0"' in asked.thread_dump()
    assert_unharmed(running)


def test_an_orphan_without_a_listener(workload, jvm_version):
    """A socket that somebody left, and a JVM that was never attached to: it makes its own."""
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
    with pytest.raises(errors.AttachSocketOrphaned, match="hsperf-check"):
        asked.thread_dump()
    assert_unharmed(running)


@pytest.mark.parametrize("more", [(), ("-XX:-UsePerfData",)], ids=["by its counters", "by its command line"])
def test_attach_disabled(workload, jvm_version, more):
    """SIGQUIT would print a dump: it is not sent."""
    running = workload(version=jvm_version, options=("-XX:+DisableAttachMechanism", *more))
    with pytest.raises(errors.AttachDisabled, match="DisableAttachMechanism"):
        client(running).thread_dump()
    assert_unharmed(running)


def test_xrs(workload, jvm_version):
    """With -Xrs the socket is there from the start; where it was deleted, a SIGQUIT would kill: it is not sent."""
    running = workload("sleep=1", version=jvm_version, options=("-Xrs",))
    asked = client(running)
    assert '"sleep-0"' in asked.thread_dump()
    os.unlink(socket_of(running))
    with pytest.raises(errors.AttachNoSignal, match="-Xrs"):
        asked.thread_dump()
    assert_unharmed(running)


@pytest.mark.parametrize("options", [(), ("-Xrs",)])
def test_a_jvm_that_is_starting(workload, jvm_version, options):
    """Asked from its first moment on, it is never killed nor given up, and answers once it can."""
    running = workload("sleep=1", version=jvm_version, options=options, ready=False)
    deadline = time.monotonic() + 60
    while True:
        try:
            assert "Full thread dump" in client(running).thread_dump()
            break
        except errors.NotAJvm:  # still the launcher, before it has loaded libjvm
            assert time.monotonic() < deadline
    running.wait_ready()
    assert_unharmed(running)


def test_a_jvm_that_reaches_no_safepoint(workload, jvm_version):
    """It answers nobody: opskit comes back in time and names the thread."""
    running = workload("hog", version=jvm_version, options=jvms.HOG_OPTIONS)
    with pytest.raises(errors.AttachTimeout, match=r'thread "hog" \(tid \d+\) used') as caught:
        client(running, 4.0).thread_dump()
    assert caught.value.thread == "hog"


def test_capabilities_that_we_have_not(workload, as_user):
    """The kernel closes /proc/PID/maps and root/ although the user is the same: the capability is named."""
    caps = ("--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service")
    become = ("setpriv", f"--reuid={APP}", f"--regid={APP}", "--clear-groups", *caps)
    running = workload("sleep=1", wrapper=become)
    with pytest.raises(errors.NotPermitted, match="cap_net_bind_service"):
        as_user(APP, lambda: client(running).thread_dump())
    assert_unharmed(running)
    assert '"sleep-0"' in client(running).thread_dump()  # root
    assert '"sleep-0"' in as_user(APP, lambda: client(running).thread_dump())  # the socket is there now


def test_another_client_starts_the_listener_meanwhile(workload, jvm_version):
    """A listener that came to be between two looks has not lost its socket: it is just making it."""
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


def test_the_jvm_ends(workload):
    """A client whose JVM has ended says so."""
    running = workload()
    asked = client(running)
    asked.thread_dump()
    running.stop()
    with pytest.raises(errors.NoSuchProcess, match="ended"):
        asked.thread_dump()


def test_a_slow_reader_does_not_hold_up_the_jvm(workload, jvm_version):
    """The request that opskit sends, and a client that reads nothing for 3 s: the JVM does not stand still."""
    running = workload("sleep=130", version=jvm_version)
    asked = client(running)
    asked.thread_dump()
    encode = attachwire.encode_v2 if asked.version == 2 else attachwire.encode_v1
    with socket.socket(socket.AF_UNIX) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        slow.connect(socket_of(running))
        before = stopped_s(running)
        slow.sendall(encode("threaddump", ()))
        time.sleep(3)
        during = stopped_s(running) - before
        while slow.recv(65536):
            continue
        assert during < 1
    assert stopped_s(running) - before < 1


def stopped_s(running):
    path = next(
        f"/tmp/{name}/{running.pid}"
        for name in os.listdir("/tmp")
        if name.startswith("hsperfdata_") and os.path.exists(f"/tmp/{name}/{running.pid}")
    )
    with open(path, "rb") as file:
        return parse_hsperfdata(file.read(), path).ticks_s("sun.rt.safepointTime")
