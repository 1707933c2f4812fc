"""The processes that have sockets open, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.process_names import name_process
from opskit.collect.tcp.facts import Owner
from opskit.proc.files.stat import parse_stat
from opskit.proc.socket_owners import Holder, SocketOwners

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.host import Host


class Owners:
    """Names the owners of sockets: those that were read last, else those at the begin of the window."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._names: dict[tuple[int, int | None], tuple[str, bool]] = {}
        self._known: dict[int, tuple[int | None, str, bool]] = {}  # since the last scan
        self.scans: list[SocketOwners] = []

    def scan(self, pids: Sequence[int]) -> SocketOwners:
        """Read the fd tables of these processes. Two scans are kept: sockets are closed within the window."""
        self.scans = [SocketOwners(self._host.fs, pids), *self.scans[:1]]
        self._known.clear()
        return self.scans[0]

    @property
    def pid_of(self) -> Callable[[int], int | None] | None:
        """The function from an inode to the process that has the socket; None: no process that was read has any."""
        scans = [scan for scan in self.scans if scan.tables]
        if not scans:
            return None
        if len(scans) == 1:
            return scans[0].pid_of
        return lambda inode: next((pid for scan in scans if (pid := scan.pid_of(inode)) is not None), None)

    def owner(self, inode: int) -> Owner | None:
        """The process that has a socket, and its fd."""
        found = next((holder for scan in self.scans if (holder := scan.holder(inode))), None) if inode else None
        return None if found is None else self._named(found)

    def _named(self, holder: Holder) -> Owner:
        pid = holder.pid
        if pid not in self._known:
            self._known[pid] = self._identify(pid)
        start, name, is_jvm = self._known[pid]
        return Owner(pid, start, name, holder.fd, holder.others, is_jvm)

    def _identify(self, pid: int) -> tuple[int | None, str, bool]:
        """The start time and the name of a process, and whether it is a JVM."""
        stat = self._host.fs.maybe(parse_stat, pid, "stat")
        start = None if stat is None else stat.start_ticks
        known = self._names.get((pid, start))
        if known is None:
            found = name_process(self._host, pid)
            known = self._names[pid, start] = found.name, found.is_jvm
        return start, *known
