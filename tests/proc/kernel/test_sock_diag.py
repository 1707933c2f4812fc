"""TCP sockets of this kernel by netlink, against what the sockets themselves and /proc/net tell."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from opskit.proc.files.net_tcp import parse_net_tcp
from opskit.proc.inet_diag import INFO, SKMEMINFO, Reader, key_of, parse_socket
from opskit.proc.kernel import sock_diag
from opskit.proc.kernel.sock_diag import SockDiag, extensions
from opskit.proc.tcp_sockets import ESTABLISHED, LISTEN


@pytest.fixture
def diag():
    made = SockDiag()
    yield made
    made.close()


def inode(of):
    return os.fstat(of.fileno()).st_ino


def sockets(diag, *arguments):
    reader = Reader()
    found = [parse_socket(chunk, start) for chunk in diag.dump(*arguments) for start, _ in reader.rows(chunk)]
    return {each.inode: each for each in found}


def keys(diag):
    reader = Reader()
    return {row[8]: key_of(chunk, start) for chunk in diag.dump() for start, row in reader.rows(chunk)}


@pytest.fixture(params=["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def pair(request):
    """A listening socket and both ends of a connection to it."""
    address = request.param
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as server, socket.socket(family) as client:
        server.bind((address, 0))
        server.listen(7)
        client.connect(server.getsockname()[:2])
        accepted, _ = server.accept()
        with accepted:
            yield server, client, accepted


@pytest.mark.parametrize("compatible", [True, False])
def test_a_dump_has_our_sockets(diag, pair, compatible):
    """Both families in one walk, or one after the other: addresses, queues, backlog, and bytes of the connection."""
    diag._compatible = compatible
    server, client, accepted = pair
    client.send(b"x" * 1000)
    found = sockets(diag)
    assert diag._compatible is compatible
    listening, ours, theirs = (found[inode(each)] for each in pair)
    assert (listening.state, listening.recv_queue, listening.send_queue) == (LISTEN, 0, 7)
    assert ours.state == theirs.state == ESTABLISHED
    assert (ours.local_port, ours.peer_port) == (theirs.peer_port, theirs.local_port)
    assert ours.peer_port == server.getsockname()[1]
    assert ours.local == theirs.peer
    assert theirs.recv_queue == theirs.info.bytes_received == 1000
    assert ours.info.bytes_sent == 1000
    assert ours.uid == os.getuid()
    assert ours.memory is None
    asked = sockets(diag, 1 << ESTABLISHED, extensions(INFO, SKMEMINFO))
    assert asked[inode(client)].memory.send_limit == client.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    assert asked[inode(accepted)].memory.receive_limit == accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    assert {each.state for each in asked.values()} == {ESTABLISHED}


def test_a_look_at_sockets_by_their_keys(diag, pair):
    """In their order, with the buffers' sizes; None for one that was closed, also where another has its ports now."""
    server, client, accepted = pair
    known = keys(diag)
    wanted = [known[inode(each)] for each in (accepted, server, client)]
    assert [parse_socket(each).inode for each in diag.look(wanted)] == [
        inode(each) for each in (accepted, server, client)
    ]
    assert [parse_socket(each).inode for each in diag.look(wanted * 30)] == [
        inode(each) for each in (accepted, server, client)
    ] * 30
    assert next(diag.look(wanted[:1])) is not None
    assert parse_socket(next(diag.look(wanted[2:]))).memory.send_limit > 0
    other_cookie = wanted[0][:-8] + bytes(range(8))
    assert [each is None for each in diag.look([other_cookie, wanted[1]])] == [True, False]
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    accepted.close()  # a reset ends both ends at once
    assert [each is None for each in diag.look(wanted)] == [True, False, True]


def test_what_is_left_of_a_dump_or_looks(diag):
    """A dump that was abandoned, and replies that nobody read, are no part of the next answer."""
    kept = [socket.socket() for _ in range(300)]
    with socket.socket() as server:
        server.listen(300)
        for each in kept:
            each.connect(server.getsockname())
        whole = sockets(diag)
        assert len(whole) > 300
        for _ in range(3):
            abandoned = diag.dump()
            next(abandoned)
            abandoned.close()
            assert sockets(diag).keys() >= {inode(each) for each in kept}
        some = [keys(diag)[inode(each)] for each in kept[:40]]
        next(diag.look(some))
        assert [parse_socket(each).inode for each in diag.look(some)] == [inode(each) for each in kept[:40]]
        abandoned = diag.dump()
        next(abandoned)
        assert [parse_socket(each).inode for each in diag.look(some)] == [inode(each) for each in kept[:40]]
        assert len(sockets(diag)) >= 300
    for each in kept:
        each.close()


def test_the_same_sockets_as_in_proc(diag, pair):
    """/proc/net/tcp and tcp6 have the same of each."""
    listed = {}
    for name in ("tcp", "tcp6"):
        with open(f"/proc/thread-self/net/{name}", encoding="ascii") as file:
            listed.update((each.inode, each) for each in parse_net_tcp(file.read()))
    found = sockets(diag)
    for each in map(inode, pair):
        there, here = listed[each], found[each]
        assert there._replace(send_queue=0) == here._replace(
            cookie=None, info=None, send_queue=0, timer=there.timer, expires_ms=there.expires_ms
        )


def test_errors(diag, monkeypatch):
    """A kernel without inet_diag; a socket that a sandbox refuses; one that the kernel does not answer."""
    monkeypatch.setattr(sock_diag, "_COMPATIBLE", 99)
    monkeypatch.setattr(sock_diag, "_BY_FAMILY", 98)
    with pytest.raises(OSError) as caught:
        sockets(diag)
    assert caught.value.errno in (errno.EINVAL, errno.ENOENT)
    monkeypatch.setattr(sock_diag, "_SOCK_DIAG", 31)
    with pytest.raises(OSError) as caught:
        SockDiag()
    assert caught.value.errno == errno.EPROTONOSUPPORT
