"""The fds that threads of a process sleep on: by `syscall` of /proc/PID/task/TID. Needs ptrace rights; without them nothing is found.

The arrays of poll(2) and the bit sets of select(2) are read from the memory of the process, what an epoll watches from its fdinfo.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.proc.files.fd import parse_epoll
from opskit.proc.files.status import parse_status
from opskit.proc.files.syscall import parse_syscall
from opskit.proc.fs import optional
from opskit.proc.memory import read_memory
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

    from opskit.proc.files.syscall import SystemCall
    from opskit.proc.fs import ProcFS

_ON_FD = frozenset({
    "read", "readv", "write", "writev", "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg", "connect",
    "accept", "accept4", "sendfile",
})  # fmt: skip
_ON_POLLFD = frozenset({"poll", "ppoll"})
_ON_SETS = frozenset({"select", "pselect6"})
_ON_EPOLL = frozenset({"epoll_wait", "epoll_pwait", "epoll_pwait2"})
_POLLFD = struct.Struct("=ihH")
_MOST_POLLED, _MOST_POLLED_OF_ALL = 1 << 16, 1 << 20  # by a call; by all threads, of which there may be thousands
_FD = 0xFFFFFFFF
_SOCKET = b"socket:["
# Bits of epoll_ctl(2) that ask for no event: EPOLLERR, EPOLLHUP come unasked; the four highest are modes.
_NO_EVENT = 0x8 | 0x10 | 0xF0000000


class FdWait(NamedTuple):
    """A thread that sleeps until something happens to one of `fds`. `line`: of its `syscall`; equal ones are the same call."""

    tid: int
    call: str
    fds: frozenset[int]
    line: str


def waits_on(fs: ProcFS, pid: int, fds: Collection[int]) -> list[FdWait]:
    """The threads that sleep on one of these fds, in the order of their TIDs."""
    wanted = frozenset(fds)
    found = []
    watched: dict[int, frozenset[int]] = {}
    left = _MOST_POLLED_OF_ALL
    for tid in optional(fs.tids, pid, default=[]) if wanted else ():
        line = fs.maybe(str, pid, "task", tid, "syscall", default="")
        call = parse_syscall(line, fs.machine)
        if call is None:
            continue
        if call.name in _ON_EPOLL:
            epoll = call.arguments[0] & _FD
            if epoll not in watched:
                watched[epoll] = _watched(fs, pid, epoll, wanted)
            on = watched[epoll]
        elif (length := _length(call)) <= left:
            left -= length
            on = fds_of(fs, pid, call)
        else:
            continue
        if not wanted.isdisjoint(on):
            found.append(FdWait(tid, call.name, on, line))
    return found


def _length(call: SystemCall) -> int:
    """Of the array or the bit sets that a call has."""
    number = call.arguments[1] if call.name in _ON_POLLFD else call.arguments[0] & _FD if call.name in _ON_SETS else 0
    return min(number, _MOST_POLLED)


def fds_of(fs: ProcFS, pid: int, call: SystemCall) -> frozenset[int]:
    """What a call other than epoll_wait waits for; empty: no fd, or it cannot be read."""
    first, second = call.arguments[:2]
    if call.name in _ON_FD:
        return frozenset({first & _FD})
    if call.name in _ON_POLLFD:
        size = min(second, _MOST_POLLED) * _POLLFD.size
        polled = read_memory(fs, pid, first, size) if size else b""
        # poll(2) passes over negative fds.
        return (
            frozenset(fd for fd, _, _ in _POLLFD.iter_unpack(polled) if fd >= 0) if len(polled) == size else frozenset()
        )
    if call.name in _ON_SETS:
        return frozenset().union(*(_bits(fs, pid, address, first & _FD) for address in call.arguments[1:4]))
    return frozenset()


def _bits(fs: ProcFS, pid: int, address: int, length: int) -> frozenset[int]:
    """The members of an fd_set, whose words are longs."""
    size = (min(length, _MOST_POLLED) + 63) // 64 * 8
    bits = read_memory(fs, pid, address, size) if address and size else b""
    return frozenset(
        number * 64 + bit
        for number, (word,) in enumerate(struct.iter_unpack("=Q", bits[: len(bits) // 8 * 8]))
        if word
        for bit in range(64)
        if word >> bit & 1 and number * 64 + bit < length
    )


def _watched(fs: ProcFS, pid: int, epoll: int, wanted: frozenset[int]) -> frozenset[int]:
    """What an epoll watches for an event. A one-shot watch that has fired asks for none, and a closed fd's number may be another file's."""
    targets = [each for each in fs.maybe(parse_epoll, pid, "fdinfo", epoll, default=[]) if each.events & ~_NO_EVENT]
    stale = {
        each.fd
        for each in targets
        if each.fd in wanted and each.inode is not None and _socket_inode(fs, pid, each.fd) not in (None, each.inode)
    }
    return frozenset(each.fd for each in targets) - stale


def _socket_inode(fs: ProcFS, pid: int, fd: int) -> int | None:
    return socket_inode(optional(fs.link, pid, "fd", fd, default=b""))


def socket_inode(target: bytes) -> int | None:
    """The inode number in the target of an fd, `socket:[8121]`."""
    return integer(target[len(_SOCKET) : -1]) if target.startswith(_SOCKET) else None


def inner_id(fs: ProcFS, pid: int, tid: int) -> int:
    """The thread's id in its own PID namespace, which thread dumps have."""
    status = fs.maybe(parse_status, pid, "task", tid, "status")
    return tid if status is None or not status.ns_pids else status.ns_pids[-1]
