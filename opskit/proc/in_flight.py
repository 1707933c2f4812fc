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
    unix: dict[bytes | None, frozenset[int]] = {}
    names: dict[int, bytes | None] = {}
    seen: set[int] = set()
    queued: dict[int, int] = {}
    for pid, fd, link in sockets:
        inode = integer(link[len(b"socket:[") : -1])
        if inode is None or inode in seen or len(seen) >= _MOST_READ:
            continue
        if pid not in names:
            names[pid] = namespace(fs, pid, "net")
            if names[pid] not in unix:
                unix[names[pid]] = fs.maybe(parse_unix_inodes, pid, "net", "unix", default=frozenset())
        if inode not in unix[names[pid]] and not any(inode in others for others in unix.values()):
            continue
        seen.add(inode)
        count = integer(fs.maybe(parse_fdinfo, pid, "fdinfo", fd.decode(), default={}).get("scm_fds", ""))
        if count:
            queued[pid] = queued.get(pid, 0) + count
    return queued
