"""Threads of a real process that sleep in each of the calls that wait for an fd."""

from __future__ import annotations

import socket
import time

import pytest

from opskit.proc import fd_waits
from opskit.proc.fd_waits import waits_on
from opskit.proc.files.syscall import SystemCall
from opskit.proc.fs import ProcFS

CODE = """
import select, socket, sys, threading
pairs = [socket.socketpair() for _ in range(3)]
one, two, three = (pair[0] for pair in pairs)
how = sys.argv[1]
def wait():
    if how == "recv": one.recv(1)
    if how == "send":
        while True: one.send(bytes(65536))
    if how == "accept": one.accept()
    if how == "poll":
        poll = select.poll(); poll.register(one, select.POLLIN); poll.register(two, select.POLLIN); poll.poll(600_000)
    if how == "select": select.select([two], [], [one, three], 600)
    if how == "epoll":
        epoll = select.epoll()
        epoll.register(one, select.EPOLLIN); epoll.register(three, select.EPOLLIN | select.EPOLLET)
        epoll.register(two, select.EPOLLIN); epoll.modify(two, 0)
        epoll.poll(600)
if how == "accept":
    one = socket.socket(); one.bind(("127.0.0.1", 0)); one.listen()
threading.Thread(target=wait, daemon=True).start()
print(one.fileno(), two.fileno(), three.fileno())
threading.Event().wait()
"""
FS = ProcFS()


def waiting(pid, fds):
    """What waits_on() finds, as soon as it finds something."""
    deadline = time.monotonic() + 30
    while not (found := waits_on(FS, pid, fds)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


@pytest.mark.parametrize(
    ("how", "calls", "on"),
    [
        ("recv", {"recvfrom"}, {0}),
        ("send", {"sendto"}, {0}),
        ("accept", {"accept", "accept4"}, {0}),
        ("poll", {"poll", "ppoll"}, {0, 1}),
        ("select", {"select", "pselect6"}, {0, 1, 2}),
        ("epoll", {"epoll_wait", "epoll_pwait", "epoll_pwait2"}, {0, 2}),
    ],
)
def test_the_thread_that_waits(spawn, how, calls, on):
    """Each call, with all fds that it waits for: an epoll entry that asks for no event is none of them."""
    process = spawn(CODE, how)
    fds = [int(word) for word in process.line.split()]
    (wait,) = waiting(process.pid, fds[:1])
    assert wait.call in calls
    assert wait.fds == {fds[place] for place in on}
    assert wait.tid != process.pid
    assert not waits_on(FS, process.pid, [max(fds) + 100]), "nobody waits on this fd"


def test_arrays_are_read_up_to_a_length_of_all_threads(spawn, monkeypatch):
    """Thousands of threads may each poll 65,536 fds; those that wait for one fd are found all the same."""
    process = spawn("""
import select, socket, threading
one, two = socket.socketpair()
def wait():
    poll = select.poll(); poll.register(one, select.POLLIN); poll.register(two, select.POLLIN); poll.poll(600_000)
for _ in range(3): threading.Thread(target=wait, daemon=True).start()
threading.Thread(target=one.recv, args=(1,), daemon=True).start()
print(one.fileno())
threading.Event().wait()
""")
    fd = int(process.line)
    deadline = time.monotonic() + 30
    while len(waits_on(FS, process.pid, [fd])) < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    monkeypatch.setattr(fd_waits, "_MOST_POLLED_OF_ALL", 4)
    found = waits_on(FS, process.pid, [fd])
    assert sorted(len(wait.fds) for wait in found) == [1, 2, 2]


def test_a_number_that_was_given_to_another_file(spawn):
    """An epoll goes on watching a file that was closed and has a copy; its fd is another socket now."""
    process = spawn("""
import os, select, socket, sys, threading
one, two = socket.socketpair()
copy, fd = os.dup(one.fileno()), one.fileno()
epoll = select.epoll(); epoll.register(fd, select.EPOLLIN); epoll.register(two, select.EPOLLIN)
other = socket.socket(); os.dup2(other.fileno(), fd)
print(fd, two.fileno())
epoll.poll(600)
""")
    reused, watched = (int(word) for word in process.line.split())
    (wait,) = waiting(process.pid, [watched])
    assert watched in wait.fds
    assert not waits_on(FS, process.pid, [reused])


def test_memory_that_cannot_be_read():
    """Bad addresses and absurd lengths give no fd, and cost nothing."""
    from opskit.proc.fd_waits import fds_of

    for name in ("poll", "ppoll", "select", "pselect6"):
        for first, second in ((1 << 62, 1 << 62), (0, 1 << 31), (1 << 31, 0), (5, 8), ((1 << 64) - 1, (1 << 64) - 1)):
            arguments = (first, second, second, second, 0, 0)
            assert fds_of(FS, 1 << 30, SystemCall(name, arguments)) == frozenset()
    assert fds_of(FS, 1 << 30, SystemCall("futex", (3, 0, 0, 0, 0, 0))) == frozenset()


def test_nothing_is_found_without_rights():
    """A process that has ended, and one whose calls cannot be read."""

    class Denied(ProcFS):
        def read_path(self, path, limit_bytes=0):
            raise PermissionError(path)

    here, there = socket.socketpair()
    with here, there:
        assert waits_on(Denied(), 1, [0]) == []
        assert waits_on(FS, (1 << 31) - 2, [0]) == []
