"""Owners of the sockets of real processes."""

from __future__ import annotations

import os
import socket

from opskit.proc.fs import ProcFS
from opskit.proc.socket_owners import SocketOwners

CODE = """
import os, socket, signal
one, other = socket.socket(), socket.socket()
os.dup2(one.fileno(), 900)
print(os.fstat(one.fileno()).st_ino, os.fstat(other.fileno()).st_ino, other.fileno())
signal.pause()
"""
EXITED_MAIN = """
import ctypes, os, socket, threading, signal
one = socket.socket()
threading.Thread(target=lambda: threading.Event().wait()).start()
print(os.fstat(one.fileno()).st_ino)
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
"""


def test_the_process_and_the_fd(spawn):
    """An fd for each socket; nobody's inode; a process that was not read."""
    process = spawn(CODE)
    one, other, fd = map(int, process.line.split())
    found = SocketOwners(ProcFS(), [process.pid])
    assert found.pid_of(one) == found.pid_of(other) == process.pid
    assert found.holder(other) == (process.pid, fd, 0)
    assert found.holder(one).fd in (900, fd - 1)
    assert found.inodes() >= {one, other}
    assert found.pid_of(0) is found.holder(0) is None
    assert SocketOwners(ProcFS(), [os.getpid()]).pid_of(one) is None


def test_a_socket_of_several_processes():
    """The first one that was read stands for it, and how many others have it."""
    with socket.socket() as shared:
        children = []
        for _ in range(3):
            pid = os.fork()
            if not pid:
                os.read(os.pipe()[0], 1)
                os._exit(0)
            children.append(pid)
        inode = os.fstat(shared.fileno()).st_ino
        try:
            found = SocketOwners(ProcFS(), sorted([os.getpid(), *children]))
        finally:
            for pid in children:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
        assert found.holder(inode) == (min(os.getpid(), *children), shared.fileno(), 3)


def test_a_process_whose_main_thread_has_exited(spawn):
    """Its sockets are in the table of another thread."""
    process = spawn(EXITED_MAIN)
    inode = int(process.line)
    assert SocketOwners(ProcFS(), [process.pid]).pid_of(inode) == process.pid


def test_processes_that_cannot_be_read():
    """One that has ended, and one without rights."""

    class Denied(ProcFS):
        def fd_pairs(self, *parts):
            raise PermissionError(*parts)

    assert SocketOwners(ProcFS(), [4194305]).vanished == [4194305]
    assert SocketOwners(Denied(), [7]).denied == [7]
