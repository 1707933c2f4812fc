"""Fds in flight: sent over a unix socket (SCM_RIGHTS, unix(7)) and not received. They are in no process's fd table.

/proc/PID/fdinfo/N of a unix socket, since Linux 5.7; of a listening one, the fds of connections that were not accepted:

scm_fds: 3
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.fd import parse_fdinfo
from opskit.proc.files.net_unix import parse_unix_inodes
from opskit.proc.namespaces import namespace
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.fs import ProcFS

_MOST_READ = 50_000


def fds_in_flight(fs: ProcFS, sockets: Iterable[tuple[int, bytes, bytes]]) -> dict[int, int]:
    """Fds in the queues of these sockets (PID, fd, link `socket:[8121]`): the first PID that has the socket -> how many."""
    unix = _UnixSockets(fs)
    seen: set[int] = set()
    queued: dict[int, int] = {}
    for pid, fd, link in sockets:
        inode = integer(link[len(b"socket:[") : -1])
        if inode is None or inode in seen or not unix.may_be(pid, inode):
            continue
        if len(seen) >= _MOST_READ:
            break
        seen.add(inode)
        count = integer(fs.maybe(parse_fdinfo, pid, "fdinfo", fd.decode(), default={}).get("scm_fds", ""))
        if count:
            queued[pid] = queued.get(pid, 0) + count
    return queued


class _UnixSockets:
    """The inodes of unix sockets by network namespace: the fdinfo of thousands of TCP sockets is not read."""

    def __init__(self, fs: ProcFS) -> None:
        self._fs = fs
        self._inodes: dict[bytes | None, frozenset[int] | None] = {}
        self._of_process: dict[int, bytes | None] = {}

    def may_be(self, pid: int, inode: int) -> bool:
        """Whether a process's socket is a unix socket, or in a copy may be one. It may be another namespace's, sent to the process."""
        if pid not in self._of_process:
            name = self._of_process[pid] = namespace(self._fs, pid, "net")
            if self._inodes.get(name) is None:  # or the process that was asked first has just ended
                self._inodes[name] = self._fs.maybe(parse_unix_inodes, pid, "net", "unix")
        own = self._inodes[self._of_process[pid]]
        if own is None:
            return not self._fs.is_live
        return inode in own or any(inodes is not None and inode in inodes for inodes in self._others(own))

    def _others(self, own: frozenset[int]) -> list[frozenset[int] | None]:
        return [inodes for inodes in self._inodes.values() if inodes is not own] if len(self._inodes) > 1 else []
