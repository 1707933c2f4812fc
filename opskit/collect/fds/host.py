"""The limits of the machine that fds count against: of processes, of all open files, of users' inotify instances, watches and epolls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.fds.facts import HostFacts, Near, User
from opskit.collect.fds.refused import OUTSIDE
from opskit.proc.fd_scan import FdScan, FdScanner
from opskit.proc.files.file_nr import read_file_nr
from opskit.proc.files.limits import is_nearly_full
from opskit.proc.files.status import parse_status
from opskit.proc.files.sysctl import read_sysctl
from opskit.proc.fs import optional
from opskit.proc.namespaces import in_initial
from opskit.proc.open_files import open_files, raise_limit
from opskit.proc.process import command_name
from opskit.proc.visibility import coverage_lines, hides_processes
from opskit.proc.watches import EPOLL, INOTIFY, payer, read_watchers, watcher_fds
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.host import Host
    from opskit.proc.fs import ProcFS
    from opskit.proc.open_files import OpenFiles
    from opskit.proc.watches import Place, Watcher

_MOST_NEAR, _MOST_PROCESSES = 100, 10


def collect_host(host: Host) -> HostFacts:
    """Look once."""
    fs = host.fs
    watchers: dict[str, list[Place]] = {INOTIFY: [], EPOLL: []}
    taken: list[tuple[int, OpenFiles]] = []

    def read(pid: int, tid: int | None, parts: tuple[object, ...]) -> tuple[list[tuple[str, Place]] | None, bool]:
        """The watchers of a table."""
        pairs = fs.fd_pairs(*parts)
        return [(kind, (tid or pid, fd)) for kind, fd in watcher_fds(pairs)] or None, bool(pairs)

    pids = fs.pids()
    for pid in pids:
        files = open_files(fs, pid)
        if files is not None and files.taken:
            taken.append((pid, files))
    scan: FdScan[list[tuple[str, Place]]] = FdScan()
    FdScanner(fs, read).scan(pids, scan)
    for table in scan.tables:
        for kind, place in table:
            watchers[kind].append(place)
    instances, are_exact = read_watchers(fs, INOTIFY, watchers[INOTIFY])
    epolls, are_exact_epolls = read_watchers(fs, EPOLL, watchers[EPOLL])
    is_complete = (
        are_exact
        and are_exact_epolls
        and not scan.denied
        and not hides_processes(fs)
        and in_initial(fs, "pid") is not False
        and all(one.watches is not None for one in (*instances, *epolls))
    )
    users = _Users(host)
    return HostFacts(
        nearest=name_near(host, taken),
        file_nr=read_file_nr(fs),
        inotify_instances=users.of(instances, [1] * len(instances)),
        inotify_watches=users.of(instances, [one.watches or 0 for one in instances]),
        epoll_watches=users.of(epolls, [one.watches or 0 for one in epolls]),
        max_instances=read_sysctl(fs, "fs", "inotify", "max_user_instances"),
        max_watches=read_sysctl(fs, "fs", "inotify", "max_user_watches"),
        max_epoll=read_sysctl(fs, "fs", "epoll", "max_user_watches"),
        complete=is_complete,
        missing=(*_missing(fs, scan, is_known=are_exact and are_exact_epolls),),
    )


def _missing(fs: ProcFS, scan: FdScan[list[tuple[str, Place]]], *, is_known: bool) -> Iterable[str]:
    yield from coverage_lines(fs, len(scan.scanned), scan.denied, 0)
    if scan.denied:
        yield f"inotify and epoll of {plural(len(scan.denied), 'process', 'processes')} are not counted"
    if in_initial(fs, "pid") is False:
        yield OUTSIDE
    if not is_known:
        yield "inotify instances and epolls that forks share could not be told apart (kcmp): equal ones count once"


def name_near(host: Host, taken: Iterable[tuple[int, OpenFiles]]) -> tuple[Near, ...]:
    """The processes with the largest shares of their limits."""
    ordered = sorted(taken, key=lambda each: (each[1].free / max(each[1].limit.soft, 1), -each[1].taken))
    nearest = (_near(host, pid, files) for pid, files in ordered[:_MOST_NEAR])
    return tuple(near for near in nearest if near.process.start_ticks is not None or not host.fs.is_live)


def _near(host: Host, pid: int, files: OpenFiles) -> Near:
    fix = None
    if is_nearly_full(files.limit.soft, files.taken):
        status = host.fs.maybe(parse_status, pid, "status")
        fix = raise_limit(host.fs, pid, status, files.limit)[0] if status is not None else None
    return Near(host.process(pid), files, fix)


class _Users:
    """Sums by the user that pays."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._payers: dict[tuple[int, str], int | None] = {}

    def of(self, watchers: Sequence[Watcher], amounts: Sequence[int]) -> tuple[User, ...]:
        """The users with the most first; the amounts are those of the watchers."""
        sums: dict[int, dict[int, int]] = {}
        for one, amount in zip(watchers, amounts):
            uid = self._payer(one)
            if uid is not None and amount:
                by_pid = sums.setdefault(uid, {})
                by_pid[one.pid] = by_pid.get(one.pid, 0) + amount
        users = (self._user(uid, by_pid) for uid, by_pid in sums.items())
        return tuple(sorted(users, key=lambda user: (-user.used, user.uid)))

    def _payer(self, one: Watcher) -> int | None:
        key = one.pid, one.kind
        if key not in self._payers:
            self._payers[key] = optional(payer, self._host.fs, one.pid, one.kind)
        return self._payers[key]

    def _user(self, uid: int, by_pid: Mapping[int, int]) -> User:
        most = sorted(by_pid.items(), key=lambda each: (-each[1], each[0]))[:_MOST_PROCESSES]
        named = tuple((pid, command_name(self._host.fs, pid), amount) for pid, amount in most)
        return User(uid, self._host.user_name(uid), sum(by_pid.values()), named)
