"""Entering the network namespace of a real process, and coming back whatever happens."""

from __future__ import annotations

import os
import signal
import socket
import threading

import pytest

from opskit import interrupts
from opskit.proc.inet_diag import Reader
from opskit.proc.kernel.network_namespace import NetworkNamespace
from opskit.proc.kernel.sock_diag import SockDiag

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="entering a namespace needs root")
CODE = """
import ctypes, os, signal
if ctypes.CDLL(None, use_errno=True).unshare(0x40000000): raise SystemExit("unshare")
open("/proc/sys/net/ipv4/ip_local_port_range", "w").write("40000 40100")
import socket
server = socket.socket(); server.bind(("0.0.0.0", 7777)); server.listen()
print("ready")
signal.pause()
"""


def network_namespace(path):
    return NetworkNamespace(path).inside()


def ours():
    return os.readlink("/proc/thread-self/ns/net")


@pytest.fixture
def space(spawn):
    process = spawn(CODE)
    if process.line != "ready":
        pytest.skip("no network namespace can be made here")
    return f"/proc/{process.pid}/ns/net"


def ports(diag):
    reader = Reader()
    return {row[2][:2] for chunk in diag.dump() for _, row in reader.rows(chunk)}


def test_what_is_made_and_read_there(space):
    """A netlink socket stays there; sysctls are those of the namespace that reads."""
    before = ours()
    with network_namespace(space):
        assert ours() == os.readlink(space) != before
        diag = SockDiag()
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            assert file.read().split() == ["40000", "40100"]
    assert ours() == before
    assert ports(diag) == {(7777).to_bytes(2, "big")}
    diag.close()


def test_coming_back(space):
    """After an error, after Ctrl-C within, and in a thread of its own."""
    before = ours()
    with pytest.raises(ValueError), network_namespace(space):
        raise ValueError
    assert ours() == before
    interrupts.install()
    try:
        with pytest.raises(KeyboardInterrupt), network_namespace(space):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
    assert ours() == before
    seen = []

    def work():
        with network_namespace(space):
            seen.append(ours())
        seen.append(ours())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [os.readlink(space), before]


def test_a_namespace_that_cannot_be_entered(tmp_path):
    """A process that has ended; a file that is no namespace."""
    before = ours()
    (tmp_path / "net").write_text("")
    for path in ("/proc/4194305/ns/net", str(tmp_path / "net"), "/proc/self/ns/uts"):
        with pytest.raises(OSError), network_namespace(path):
            socket.socket().close()
    assert ours() == before


def test_it_outlives_its_process(space):
    """It can be entered again and again, also after the process has ended; closed, it is let go."""
    held, its = NetworkNamespace(space), os.readlink(space)
    os.kill(int(space.split("/")[2]), signal.SIGKILL)
    for _ in range(2):
        with held.inside():
            assert ours() == its
    held.close()
    with pytest.raises(OSError), held.inside():
        pass
