"""Sockets of real processes by protocol, state and peer; the files of /proc/PID/net, whole and damaged."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys

import pytest

from opskit.proc import net_sockets
from opskit.proc.fs import ProcFS
from opskit.proc.net_sockets import NamedSocket, name_sockets


def target_of(sock):
    return os.readlink(f"/proc/self/fd/{sock.fileno()}").encode()


def named(*sockets, fs=None, parts=("self",)):
    """The name of each of our sockets; None: not found."""
    names, places = name_sockets(fs or ProcFS(), parts, [target_of(each) for each in sockets])
    return [names[places[target]] if (target := target_of(each)) in places else None for each in sockets]


@pytest.fixture
def kept():
    """Sockets that are closed at the end."""
    made = []
    yield made
    for each in made:
        each.close()


def connected(kept, family=socket.AF_INET, host="127.0.0.1"):
    """(listener, client, accepted)."""
    listener = socket.socket(family)
    kept.append(listener)
    listener.bind((host, 0))
    listener.listen(8)
    client = socket.create_connection(listener.getsockname()[:2])
    kept.append(client)
    accepted, _ = listener.accept()
    kept.append(accepted)
    return listener, client, accepted


@pytest.mark.parametrize("by", ["sock_diag", "files"])
def test_tcp_of_both_families(kept, monkeypatch, by):
    """A listener, who connected where, and who came from where; by a dump and by /proc/PID/net they are the same."""
    if by == "files":
        monkeypatch.setattr(net_sockets, "_dumped", lambda *_: None)
    four, six = connected(kept), connected(kept, socket.AF_INET6, "::1")
    ports = [each[0].getsockname()[1] for each in (four, six)]
    assert named(*four, *six) == [
        NamedSocket("tcp", f"LISTEN on 127.0.0.1:{ports[0]}"),
        NamedSocket("tcp", f"ESTAB to 127.0.0.1:{ports[0]}"),
        NamedSocket("tcp", "ESTAB", "127.0.0.1", ports[0]),
        NamedSocket("tcp", f"LISTEN on [::1]:{ports[1]}"),
        NamedSocket("tcp", f"ESTAB to [::1]:{ports[1]}"),
        NamedSocket("tcp", "ESTAB", "[::1]", ports[1]),
    ]


@pytest.mark.parametrize("by", ["sock_diag", "files"])
def test_an_ipv4_peer_of_a_socket_for_both_families(kept, monkeypatch, by):
    """As Java's are: its address is shown as IPv4."""
    if by == "files":
        monkeypatch.setattr(net_sockets, "_dumped", lambda *_: None)
    listener = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    port = listener.getsockname()[1]
    client = socket.create_connection(("127.0.0.1", port))
    accepted, _ = listener.accept()
    kept += [listener, client, accepted]
    assert named(accepted) == [NamedSocket("tcp", "ESTAB", "127.0.0.1", port)]


def test_close_wait_of_both_sides(kept):
    """The peer has closed it: of a connection that was made, and of one that was accepted."""
    _, client, other = connected(kept)
    other.close()
    listener, other, accepted = connected(kept)
    other.close()
    for each in (client, accepted):
        select.select([each], [], [], 5)
    peer = client.getpeername()
    assert named(client, accepted) == [
        NamedSocket("tcp", f"CLOSE_WAIT to 127.0.0.1:{peer[1]}"),
        NamedSocket("tcp", "CLOSE_WAIT", "127.0.0.1", listener.getsockname()[1]),
    ]


def test_datagrams(kept):
    """A port of its own, a peer, and a port that the kernel chose."""
    own, to, any_ = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3))
    kept += [own, to, any_]
    for port in range(20000, 20100):
        try:
            own.bind(("127.0.0.1", port))
            break
        except OSError:
            continue
    to.connect(("127.0.0.1", 5353))
    any_.bind(("127.0.0.1", 0))
    is_high = any_.getsockname()[1] >= 32768
    expected = "on a port above 32767" if is_high else f"on 127.0.0.1:{any_.getsockname()[1]}"
    assert named(own, to, any_) == [
        NamedSocket("udp", f"on 127.0.0.1:{own.getsockname()[1]}"),
        NamedSocket("udp", "to 127.0.0.1:5353"),
        NamedSocket("udp", expected),
    ]


@pytest.mark.parametrize("by", ["sock_diag", "files"])
def test_unix_sockets(kept, tmp_path, monkeypatch, by):
    """Pairs, a listener and its connections, a datagram socket with a path, names that are abstract; the files have no peers."""
    if by == "files":
        monkeypatch.setattr(net_sockets, "_dumped", lambda *_: None)
    pair = socket.socketpair()
    listener = socket.socket(socket.AF_UNIX)
    path = str(tmp_path / "a b")
    listener.bind(path)
    listener.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    accepted, _ = listener.accept()
    datagram, auto, idle, packets = (
        socket.socket(socket.AF_UNIX, kind)
        for kind in (socket.SOCK_DGRAM, socket.SOCK_DGRAM, socket.SOCK_STREAM, socket.SOCK_SEQPACKET)
    )
    datagram.bind(path + ".log")
    auto.bind("")
    sender, abstract = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX)
    sender.connect(path + ".log")
    abstract.bind("\0opskit-test-\0" + str(os.getpid()))
    kept += [*pair, listener, client, accepted, datagram, auto, idle, packets, sender, abstract]
    details = [each.detail for each in named(*kept)]
    assert details == [
        "stream", "stream", f"stream listening {path}", f"stream to {path}" if by == "sock_diag" else "stream",
        f"stream {path}", f"datagram {path}.log", "datagram a name of the kernel's", "stream unconnected",
        "seqpacket unconnected", f"datagram to {path}.log" if by == "sock_diag" else "datagram",
        f"stream @opskit-test-@{os.getpid()}",
    ]  # fmt: skip
    assert {each.kind for each in named(*kept)} == {"unix"}


def test_sockets_of_the_kernel_and_the_wire(kept, root_only):
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    netlink.bind((0, 0))
    packet = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
    kept += [netlink, packet, raw]
    assert named(*kept) == [
        NamedSocket("netlink", "route"), NamedSocket("packet", "protocol 0x0003"), NamedSocket("socket", "raw or ping"),
    ]  # fmt: skip


def test_a_socket_without_an_address_is_not_listed(kept):
    """TCP's tables have those that are bound or connected."""
    kept.append(socket.socket())
    assert named(*kept) == [None]


def test_another_network_namespace(kept, root_only, spawn):
    """Its tables are read, not ours: ours has the same port with another state."""
    code = """
import os, socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
print(s.getsockname()[1], os.readlink(f"/proc/self/fd/{s.fileno()}"), flush=True)
import time; time.sleep(600)
"""
    script = f"ip link set lo up; exec {sys.executable} -u -c '{code}'"
    process = subprocess.Popen(["unshare", "-n", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline().split()
        if not line:
            pytest.skip("cannot make a network namespace")
        port, target = line
        names, places = name_sockets(ProcFS(), (process.pid,), [target.encode()])
        assert names[places[target.encode()]] == NamedSocket("tcp", f"LISTEN on 127.0.0.1:{port}")
        assert name_sockets(ProcFS(), ("self",), [target.encode()]) == ([], {})
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_damaged_and_unknown_targets():
    """Numbers that are no sockets, words that are no numbers."""
    targets = [
        b"socket:[]",
        b"socket:[x]",
        b"socket:[0]",
        b"socket:[99999999999999999999999]",
        b"socket:[18446744073709551615]",
    ]
    assert name_sockets(ProcFS(), ("self",), targets) == ([], {})


@pytest.mark.parametrize("cut", range(0, 192, 7))
def test_a_dump_that_is_cut(cut):
    """Whole messages are read; one that is cut, or that claims an impossible length, ends the chunk."""
    message = (
        (96).to_bytes(4, sys.byteorder)
        + bytes(12)
        + b"\x02\x0a\0\0"
        + b"\x1f\x90\0\0"
        + bytes(60)
        + (7).to_bytes(4, sys.byteorder)
    )
    chunk = (message + bytes(8)) * 2
    rows = [*net_sockets._messages(chunk[: len(chunk) - cut])]
    assert len(rows) == (len(chunk) - cut) // 96
    assert all(row[-1] == 7 and row[0] == 2 and row[1] == 10 and row[2] == b"\x1f\x90" for row in rows)
    assert [*net_sockets._messages((3).to_bytes(4, sys.byteorder) + bytes(200))] == []
