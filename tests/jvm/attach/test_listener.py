"""The socket is the JVM's own, in whatever namespaces it runs."""

from __future__ import annotations

import os
import subprocess
import tempfile

import pytest
from attaching import assert_unharmed, client, refused

from opskit.errors import AttachError
from opskit.jvm.attach.client import AttachClient
from opskit.proc.fs import ProcFS

APP = 1234
UNSHARED = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
OWN_TMP = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /tmp && exec "$@"', "sh")


@pytest.mark.parametrize("user", [None, APP])
def test_own_pid_and_mount_namespace(workload, jvm_version, root_only, user):
    """Its pid inside is another, and its /tmp is its own: reached through /proc/PID/root, from outside."""
    become = () if user is None else ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")
    tmp = (*OWN_TMP[:-2], 'mount -t tmpfs -o mode=1777 tmpfs /tmp && exec "$@"', "sh")
    running = workload("sleep=1", version=jvm_version, wrapper=(*tmp, *UNSHARED, *become))
    asked = client(running)
    assert '"sleep-0"' in asked.thread_dump()
    assert asked.target.jvm.ns_pid != running.pid
    inside = os.listdir(f"/proc/{running.pid}/root/tmp")
    assert f".java_pid{asked.target.jvm.ns_pid}" in inside
    assert f".attach_pid{asked.target.jvm.ns_pid}" not in inside
    assert_unharmed(running)


def test_a_user_namespace(workload, root_only):
    """Root outside is uid 65534 inside: opskit connects with the IDs that the JVM has in our namespace."""
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
    """The later listener takes the name: its answer is not accepted for the earlier JVM."""
    options = ("-Xmx128m", "-XX:-UsePerfData")  # else they remove the counters of JVMs whose PIDs they do not see
    first = workload("sleep=1", options=options, wrapper=UNSHARED)
    second = workload("sleep=2", options=options, wrapper=UNSHARED)
    asked_first, asked_second = client(first), client(second)
    assert asked_first.target.jvm.ns_pid == asked_second.target.jvm.ns_pid
    try:
        assert '"sleep-1"' not in asked_first.thread_dump()
        with refused("socket-foreign", f"belongs to process {first.pid}") as caught:
            asked_second.thread_dump()
        assert caught.value.facts["peer"] == first.pid
        assert_unharmed(second)
    finally:
        os.unlink(f"/tmp/{asked_first.target.socket_name}")


def test_capabilities_that_we_have_not(workload, as_user):
    """The kernel denies /proc/PID/maps and root/ although the user is the same: the error names the capability."""
    caps = ("--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service")
    become = ("setpriv", f"--reuid={APP}", f"--regid={APP}", "--clear-groups", *caps)
    running = workload("sleep=1", wrapper=become)
    with pytest.raises(AttachError, match=r"permission denied for .*cap_net_bind_service"):
        as_user(APP, lambda: client(running).thread_dump())
    assert_unharmed(running)
    assert '"sleep-0"' in client(running).thread_dump()  # root
    assert '"sleep-0"' in as_user(APP, lambda: client(running).thread_dump())  # the socket is there now


@pytest.mark.parametrize("kind", ["file", "link", "directory", "fifo"])
def test_no_socket_in_the_sockets_place(fake_jvm, kind, tmp_path):
    """A file that is not a socket stays unchanged, and nothing is sent."""
    fake = fake_jvm("v1")
    path = f"/tmp/.java_pid{fake.pid}"
    make = {
        "file": lambda: open(path, "w").close(),
        "link": lambda: os.symlink("/tmp/elsewhere", path),
        "directory": lambda: os.mkdir(path),
        "fifo": lambda: os.mkfifo(path),
    }
    make[kind]()
    try:
        with refused("socket-insecure", r"instead of its socket. Nothing was sent"):
            client(fake).thread_dump()
        assert fake.output() == "READY"
    finally:
        os.rmdir(path) if kind == "directory" else os.unlink(path)


def test_another_process_behind_the_socket(fake_jvm):
    """SO_PEERCRED must name the process itself."""
    fake, other = fake_jvm("v1"), fake_jvm("v1")
    client(other).thread_dump()
    os.link(f"/tmp/.java_pid{other.pid}", f"/tmp/.java_pid{fake.pid}")
    with refused("socket-foreign", f"belongs to process {other.pid}") as caught:
        client(fake).thread_dump()
    assert caught.value.facts["peer"] == other.pid
    assert fake.output() == "READY"


class OwnTmp(ProcFS):
    """Processes that have `place` as their /tmp."""

    def __init__(self, place):
        super().__init__()
        self.place = str(place)

    def inside(self, pid, path):
        return self.place if path == "/tmp" else super().inside(pid, path)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda place: place.touch(), "Not a directory"),
        (lambda place: place.symlink_to(place), "Too many levels of symbolic links"),
        (lambda place: None, "No such file or directory"),
    ],
)
def test_a_tmp_that_is_not_a_directory(fake_jvm, tmp_path, make, says):
    """An error with the reason; no signal is sent."""
    fake, place = fake_jvm("v1"), tmp_path / "tmp"
    make(place)
    with refused("tmp", says):
        AttachClient(OwnTmp(place), fake.pid).thread_dump()
    assert fake.output() == "READY"


def test_a_tmp_that_its_user_may_not_search(workload, as_user):
    """Permission denied; no signal is sent."""
    running = workload(user=APP, group=APP)
    with (
        tempfile.TemporaryDirectory() as place,
        pytest.raises(AttachError, match=r"permission denied for /tmp/\.java_"),
    ):
        as_user(APP, lambda: AttachClient(OwnTmp(place), running.pid).thread_dump())
    assert_unharmed(running)
