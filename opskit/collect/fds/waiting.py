"""The threads that wait on the fds of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opskit.collect.fd_threads import FdThread
    from opskit.collect.fds.groups import Fd, Grouping, Key
    from opskit.host import Host


class Waiting:
    """Reads them once: with `ask` by one thread dump of a JVM. In later looks of a watch they stand for the fds that are still the same."""

    def __init__(self, host: Host, pid: int, *, ask: bool) -> None:
        self._host, self._pid, self._ask = host, pid, ask
        self._threads: dict[Fd, list[FdThread]] | None = None

    def of(self, grouping: Grouping, problems: list[str]) -> dict[Key, tuple[FdThread, ...]]:
        """The threads of each group, each once. `problems` gets the reason why there is no dump."""
        if self._threads is None:
            self._threads = self._read(grouping, problems)
        found: dict[Key, dict[int, FdThread]] = {}
        for key, members in grouping.groups.items() if self._threads else ():
            for fd in members.fds:
                for thread in self._threads.get(fd, ()):
                    found.setdefault(key, {}).setdefault(thread.tid, thread)
        return {key: tuple(threads.values()) for key, threads in found.items()}

    def _read(self, grouping: Grouping, problems: list[str]) -> dict[Fd, list[FdThread]]:
        from opskit.collect.fd_threads import waiting_threads

        highest = max((int(fd) for one in grouping.groups.values() for fd, _ in one.fds), default=-1)
        by_fd: dict[bytes, list[FdThread]] = {}
        for thread in waiting_threads(self._host, self._pid, range(highest + 1), self._ask, problems):
            by_fd.setdefault(b"%d" % thread.fd, []).append(thread)
        fds = (fd for one in grouping.groups.values() for fd in one.fds) if by_fd else ()
        return {fd: by_fd[fd[0]] for fd in fds if fd[0] in by_fd}
