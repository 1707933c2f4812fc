"""Which process has which socket open: one pass over the fd tables, `socket:[INODE]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fd_scan import FdScan, FdScanner
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.fs import ProcFS

_SOCKET = b"socket:["


class Holder(NamedTuple):
    """A process with a socket, by the fd. `others`: how many more processes have it."""

    pid: int
    fd: int
    others: int


class _Table(NamedTuple):
    pid: int
    fds: dict[bytes, bytes]  # the target -> the name of the last fd that leads to it


class SocketOwners(FdScan[_Table]):
    """The sockets of the processes that were read; the first process with a socket stands for it."""

    def __init__(self, fs: ProcFS, pids: Iterable[int]) -> None:
        super().__init__()
        self._pids: dict[bytes, int] = {}
        self._others: dict[bytes, int] = {}
        self._tables: dict[int, dict[bytes, bytes]] = {}

        def read(pid: int, _: int | None, parts: tuple[object, ...]) -> tuple[_Table | None, bool]:
            pairs = fs.fd_pairs(*parts)
            found = {target: name for name, target in pairs if target[:8] == _SOCKET}
            return (_Table(pid, found) if found else None), bool(pairs)

        FdScanner(fs, read).scan(pids, self)
        for pid, found in self.tables:
            mine = dict.fromkeys(found, pid)
            for target in mine.keys() & self._pids.keys():  # inherited, or passed on
                if self._pids[target] != pid:
                    self._others[target] = self._others.get(target, 0) + 1
                del mine[target]
            self._pids.update(mine)
            self._tables.setdefault(pid, {}).update(found)

    def pid_of(self, inode: int) -> int | None:
        """The process that has a socket; None: none of those that were read."""
        return self._pids.get(b"socket:[%d]" % inode)

    def holder(self, inode: int) -> Holder | None:
        """The same with the fd."""
        target = b"socket:[%d]" % inode
        pid = self._pids.get(target)
        fd = integer(self._tables[pid][target]) if pid is not None else None
        return None if pid is None or fd is None else Holder(pid, fd, self._others.get(target, 0))

    def counts(self) -> dict[int, int]:
        """How many sockets each process has that has any."""
        return {pid: len(found) for pid, found in self._tables.items()}

    def inodes(self) -> set[int]:
        """Every socket."""
        return {inode for target in self._pids if (inode := integer(target[8:-1])) is not None}
