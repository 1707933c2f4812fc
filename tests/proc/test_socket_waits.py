"""Peers of the sockets that threads of a real process read from."""

from __future__ import annotations

import os
import socket
import time

import pytest

from opskit.proc.fs import ProcFS
from opskit.proc.socket_waits import Peer, calls, peers

CODE = """
import select, socket, sys
host, port, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
one = socket.create_connection((host, port))
print("ready")
if how == "read": one.makefile("rb", 0).read(1)
if how == "recv": one.recv(1)
if how == "poll":
    poll = select.poll(); poll.register(one, select.POLLIN); poll.poll(600_000)
"""


@pytest.mark.parametrize(("address", "how"), [("127.0.0.1", "read"), ("::1", "recv"), ("127.0.0.1", "poll")])
def test_the_peer_of_a_reading_thread(spawn, address, how):
    """By the fd of read and recv, and by that in the struct pollfd of poll."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as server:
        server.bind((address, 0))
        server.listen()
        port = server.getsockname()[1]
        pid = spawn(CODE, address, port, how).pid
        fs, host = ProcFS(), f"[{address}]" if ":" in address else address
        deadline = time.monotonic() + 30
        while not (found := peers(fs, pid, calls(fs, pid))) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert found == {pid: Peer(host, port)}
        assert found[pid].address == f"{host}:{port}"
        # The other side of this connection came in through a port that is listened on.
        inner, _ = server.accept()
        reader = os.fork()
        if not reader:
            inner.recv(1)
            os._exit(0)
        while not (found := peers(fs, reader, calls(fs, reader))) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(reader, 9)
        os.waitpid(reader, 0)
        inner.close()
        assert found[reader].inbound


def test_nothing_is_said_without_rights():
    """A process that has ended, and one whose calls cannot be read."""

    class Denied(ProcFS):
        def read_path(self, path, limit_bytes=0):
            raise PermissionError(path)

    assert calls(ProcFS(), 1 << 30) == {}
    assert calls(Denied(), os.getpid()) == {}
    line = "7 0xffffffffffffffff 0x1 0x0 0x0 0x0 0x0 0x7ffd 0x7f3c"
    assert peers(ProcFS(), os.getpid(), {os.getpid(): line}) == {}
