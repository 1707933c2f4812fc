"""The peers of the TCP sockets that threads wait for an answer of.

/proc/PID/task/TID/syscall (proc_pid_syscall(5)) has the fd of a read or recv, and the address of the array of a poll(2),
which is read from the memory of the process. Needs ptrace rights; without them nothing is found.
"""

from __future__ import annotations

import platform
import struct
from typing import TYPE_CHECKING

from opskit.proc.files.net_tcp import LISTEN, parse_net_tcp
from opskit.proc.files.status import parse_status
from opskit.proc.fs import optional
from opskit.quantities import hexadecimal, integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.proc.fs import ProcFS

# System calls whose first argument is an fd, and those whose first two are struct pollfd[] and its length.
_ON_FD = {
    "x86_64": frozenset({0, 19, 42, 45, 47}),  # read, readv, connect, recvfrom, recvmsg
    "generic": frozenset({63, 65, 203, 207, 212}),
}
_ON_POLLFD = {"x86_64": frozenset({7, 271}), "generic": frozenset({73})}  # poll, ppoll
_POLLFD = struct.Struct("=ihh")
_SOCKET = b"socket:["
_HIGHEST = (1 << 63) - 9  # address that pread(2) takes


class Peer(NamedTuple):
    """The other end of a TCP socket. `inbound`: it connected to a port that is listened on here."""

    host: str
    port: int
    inbound: bool = False

    @property
    def address(self) -> str:
        """`10.0.0.7:6379`, `[2001:db8::7]:6379`."""
        return f"{self.host}:{self.port}"


def calls(fs: ProcFS, pid: int) -> dict[int, str]:
    """The line of `syscall` of each thread that sleeps in a system call on an fd, by TID.

    Equal lines of two readings: the thread is in the same call of the same method, with the same arguments.
    """
    family = "x86_64" if platform.machine() == "x86_64" else "generic"
    wanted = _ON_FD[family] | _ON_POLLFD[family]
    found = {}
    for tid in optional(fs.tids, pid, default=[]):
        line = fs.maybe(str, pid, "task", tid, "syscall", default="")
        if integer(line.partition(" ")[0]) in wanted:
            found[tid] = line
    return found


def peers(fs: ProcFS, pid: int, sleeping: Mapping[int, str]) -> dict[int, Peer]:
    """The peer of each thread's socket, by the thread id in its own PID namespace. `sleeping`: as of calls()."""
    inodes: dict[int, int] = {}
    known: dict[int, int | None] = {}
    for tid, line in sleeping.items():
        fd = _fd_of(fs, pid, line)
        if fd is not None and fd not in known:
            known[fd] = _inode(optional(fs.link, pid, "fd", fd, default=b""))
        if fd is not None and (inode := known[fd]) is not None:
            inodes[tid] = inode
    if not inodes:
        return {}
    wanted = set(inodes.values())
    # /proc/net would be those of our own network namespace.
    sockets = [each for name in ("tcp", "tcp6") for each in fs.maybe(parse_net_tcp, pid, "net", name, default=[])]
    listening = {each.local_port for each in sockets if each.state == LISTEN}
    by_inode = {
        each.inode: Peer(each.host, each.port, each.local_port in listening)
        for each in sockets
        if each.inode in wanted and each.state != LISTEN
    }
    return {_inner_id(fs, pid, tid): by_inode[inode] for tid, inode in inodes.items() if inode in by_inode}


def _fd_of(fs: ProcFS, pid: int, line: str) -> int | None:
    number, *arguments = line.split()
    first, second = (hexadecimal(word) for word in (*arguments, "", "")[:2])
    if first is None:
        return None
    if integer(number) not in _ON_POLLFD["x86_64" if platform.machine() == "x86_64" else "generic"]:
        return first & 0xFFFFFFFF
    if second != 1 or first > _HIGHEST:  # a thread that waits for one answer polls one fd
        return None
    polled = optional(fs.read_at, fs.path(pid, "mem"), first, _POLLFD.size, default=b"")
    return _POLLFD.unpack(polled)[0] if len(polled) == _POLLFD.size else None


def _inode(target: bytes) -> int | None:
    return integer(target[len(_SOCKET) : -1]) if target.startswith(_SOCKET) else None


def _inner_id(fs: ProcFS, pid: int, tid: int) -> int:
    status = fs.maybe(parse_status, pid, "task", tid, "status")
    return tid if status is None or not status.ns_pids else status.ns_pids[-1]
