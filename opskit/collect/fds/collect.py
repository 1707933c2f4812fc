"""Read the file descriptors of one process: by kind and place, how old, against its limit, who waits on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.fds.ages import Ages
from opskit.collect.fds.facts import Facts, Group
from opskit.collect.fds.groups import Grouper
from opskit.collect.fds.refused import refused
from opskit.collect.fds.waiting import Waiting
from opskit.collect.given_pids import GivenPids
from opskit.errors import NoSuchProcess, NotSupported
from opskit.jvm.mapped_files import parse_jvm_maps
from opskit.proc.fd_scan import FdScan, FdScanner
from opskit.proc.files.boot_time import parse_boot_time, started_s
from opskit.proc.files.status import parse_status
from opskit.proc.open_files import open_files, raise_limit
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.collect.fd_threads import FdThread
    from opskit.collect.fds.facts import Request
    from opskit.collect.fds.groups import Fd, Grouping, Key, Parts
    from opskit.host import Host
    from opskit.proc.process import Process

_FEWEST_THREADS_OF_A_JVM = 4


class Collector:
    """Looks at one process, again and again for a watch."""

    def __init__(self, host: Host, ask: Request, watch: bool = False) -> None:
        self._host, self._ask, self._watch = host, ask, watch
        self._grouper = Grouper(host)
        self._given = GivenPids(host, (ask.pid,), "fds", shows_all=False)
        self._first_s = host.monotonic()
        self._waiting: Waiting | None = None

    def look(self) -> Facts:
        """Read everything. Raises NoSuchProcess, NotPermitted, NotSupported."""
        host, pid = self._host, self._ask.pid
        at_s, now_s = host.monotonic() - self._first_s, host.now().timestamp()
        process = self._process()
        parts, fds = self._table(process)
        grouping = self._grouper.sort(parts, fds)
        status = host.fs.maybe(parse_status, pid, "status")
        taken = open_files(host.fs, pid)
        is_jvm = self._is_jvm(process)
        problems: list[str] = []
        threads = self._threads(grouping, problems, is_jvm=is_jvm)
        ages = Ages(host, self._started_s(process), self._grouper.may_look)
        return Facts(
            process, taken, tuple(_groups(parts, grouping, ages, threads)), at_s, now_s,
            sum(len(members.fds) for members in grouping.groups.values()), is_jvm,
            missing=(*_missing(grouping, parts, is_live=host.fs.is_live), *problems),
            raise_limit=None if status is None or taken is None else raise_limit(host.fs, pid, status, taken.limit)[0],
        )  # fmt: skip

    def _process(self) -> Process:
        self._given.living()
        return self._host.process(self._ask.pid)

    def _table(self, process: Process) -> tuple[Parts, list[Fd]]:
        """The fd table of the process, and the directory that has it: a thread's where the main thread has exited."""
        host, pid = self._host, process.pid

        def read(_pid: int, _tid: int | None, parts: Parts) -> tuple[tuple[Parts, list[Fd]] | None, bool]:
            fds = host.fs.fd_pairs(*parts)
            return ((parts, fds) if fds else None), bool(fds)

        scan: FdScan[tuple[Parts, list[Fd]]] = FdScan()
        FdScanner(host.fs, read).scan([pid], scan)
        if scan.denied and not host.fs.is_live:
            raise NotSupported(
                f"{host.fs.path(pid, 'fd')} is not in this copy: the file descriptors of {pid} are unknown"
            )
        if scan.denied:
            raise refused(host, process)
        if scan.vanished:
            raise NoSuchProcess(pid, "it ended just now")
        parts, fds = max(scan.tables, key=lambda table: len(table[1]), default=((pid,), []))
        # readdir lists a live table in the order of the numbers.
        return parts, fds if host.fs.is_live else sorted(fds, key=lambda fd: (len(fd[0]), fd[0]))

    def _is_jvm(self, process: Process) -> bool:
        if (process.threads or 0) < _FEWEST_THREADS_OF_A_JVM:
            return False
        found = self._host.fs.maybe(parse_jvm_maps, process.pid, "maps")
        return found is not None and found.is_jvm

    def _started_s(self, process: Process) -> float | None:
        boot_s = self._host.fs.maybe(parse_boot_time, "stat")
        return None if process.start_ticks is None else started_s(boot_s, process.start_ticks, self._host.clock_ticks)

    def _threads(self, grouping: Grouping, problems: list[str], *, is_jvm: bool) -> dict[Key, tuple[FdThread, ...]]:
        """A watch without --ask reads counts alone."""
        if not self._host.is_own or (self._watch and not self._ask.ask):
            return {}
        if self._waiting is None:
            self._waiting = Waiting(self._host, self._ask.pid, ask=self._ask.ask and is_jvm)
        return self._waiting.of(grouping, problems)


def _groups(parts: Parts, grouping: Grouping, ages: Ages, threads: dict[Key, tuple[FdThread, ...]]) -> Iterator[Group]:
    """The groups, the largest first."""
    for key, members in sorted(grouping.groups.items(), key=lambda item: (-len(item[1].fds), item[0])):
        numbers = [int(fd) for fd, _ in members.fds]  # a number: fs lists no other names
        oldest, newest = ages.span(parts, key[0], members.fds)
        yield Group(
            *key, len(numbers), min(numbers), max(numbers), members.example, oldest, newest, threads.get(key, ())
        )


def _missing(grouping: Grouping, parts: Parts, *, is_live: bool) -> Iterator[str]:
    if grouping.unseen and not is_live:
        yield f"the kinds of {plural(grouping.unseen, 'fd')} on files are told by their paths: a copy has no file types"
    elif grouping.unseen:
        yield (
            f"not looked at, since a stat may hang: {plural(grouping.unseen, 'fd')} on network file systems or detached mounts; "
            "their kinds are told by their paths"
        )
    if grouping.beyond:
        yield f"not looked at, since there are too many: {plural(grouping.beyond, 'open file')}, whose kinds are told by their paths"
    if grouping.unknown:
        yield f"the states and peers of {plural(grouping.unknown, 'socket')} are unknown"
    if len(parts) > 1:
        yield f"the main thread has exited: these are the file descriptors of thread {parts[-1]}"
