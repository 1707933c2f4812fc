"""The peers of the TCP sockets that threads wait for an answer of.

`syscall` of /proc/PID/task/TID has the fd of a read or recv, and the address of the array of a poll(2), which is read from the
memory of the process. Needs ptrace rights; without them nothing is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fd_waits import fds_of, inner_id, socket_inode
from opskit.proc.files.net_tcp import parse_net_tcp
from opskit.proc.files.syscall import parse_syscall
from opskit.proc.fs import optional
from opskit.proc.tcp_sockets import LISTEN, host_text
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.proc.fs import ProcFS

_CALLS = frozenset({"read", "readv", "connect", "recvfrom", "recvmsg", "poll", "ppoll"})
_POLLS = ("poll", "ppoll")


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
    found = {}
    for tid in optional(fs.tids, pid, default=[]):
        line = fs.maybe(str, pid, "task", tid, "syscall", default="")
        call = parse_syscall(line, fs.machine)
        if call is not None and call.name in _CALLS:
            found[tid] = line
    return found


def peers(fs: ProcFS, pid: int, sleeping: Mapping[int, str]) -> dict[int, Peer]:
    """The peer of each thread's socket, by the thread id in its own PID namespace. `sleeping`: as of calls()."""
    inodes: dict[int, int] = {}
    known: dict[int, int | None] = {}
    for tid, line in sleeping.items():
        fd = _fd_of(fs, pid, line)
        if fd is not None and fd not in known:
            known[fd] = socket_inode(optional(fs.link, pid, "fd", fd, default=b""))
        if fd is not None and (inode := known[fd]) is not None:
            inodes[tid] = inode
    if not inodes:
        return {}
    wanted = set(inodes.values())
    # /proc/net would be those of our own network namespace.
    sockets = [each for name in ("tcp", "tcp6") for each in fs.maybe(parse_net_tcp, pid, "net", name, default=[])]
    listening = {each.local_port for each in sockets if each.state == LISTEN}
    by_inode = {
        each.inode: Peer(host_text(each.peer), each.peer_port, each.local_port in listening)
        for each in sockets
        if each.inode in wanted and each.state != LISTEN
    }
    return {inner_id(fs, pid, tid): by_inode[inode] for tid, inode in inodes.items() if inode in by_inode}


def _fd_of(fs: ProcFS, pid: int, line: str) -> int | None:
    call = parse_syscall(line, fs.machine)
    if call is None or (
        call.name in _POLLS and call.arguments[1] != 1
    ):  # a thread that waits for one answer polls one fd
        return None
    return next(iter(fds_of(fs, pid, call)), None)
