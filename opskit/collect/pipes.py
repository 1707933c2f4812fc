"""Read who holds which pipe, what is queued in it, and who is blocked on it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from opskit import shell
from opskit.collect.given_pids import GivenPids
from opskit.errors import NoSuchProcess, NotPermitted, NotSupported
from opskit.proc.files.boot_time import parse_boot_time
from opskit.proc.files.stat import parse_stat
from opskit.proc.in_flight import fds_in_flight
from opskit.proc.pipe_scan import Holder, PipeScan, PipeScanner, only
from opskit.proc.process import command_name, real_uid
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.visibility import coverage_lines, more_rights_show_more
from opskit.quantities import plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from opskit.collect.pipe_blocks import Blocks
    from opskit.host import Host
    from opskit.proc.pipe_fill import Fill
    from opskit.proc.process import Process


class Request(NamedTuple):
    """What to read. No `pids` and no `uids`: every process."""

    pids: tuple[int, ...] = ()
    uids: frozenset[int] = frozenset()
    processes: bool = False  # identify each process
    commands: bool = False  # their names alone
    ends: bool = False  # directions, and the processes on the other side
    fill: bool = False  # what is queued, and who is blocked
    owners: bool = False  # capacities alone, by the user who made the pipe
    fifos: bool = False
    threads: bool = False

    @property
    def selective(self) -> bool:
        """Whether rows and counts cover some processes only."""
        return bool(self.pids or self.uids)

    @property
    def everywhere(self) -> bool:
        """Whether every process of the machine is looked at for its ends of these pipes."""
        return self.ends or not self.selective


class Sample(NamedTuple):
    """One look of a watch: seconds since the first; the pipes (also 0) of each (pid, start ticks), names of those with some."""

    at_s: float
    pipe_count: int
    fd_count: int
    pipes: Mapping[tuple[int, int], int]
    commands: Mapping[tuple[int, int], str]


class Facts(NamedTuple):
    """One look."""

    ask: Request
    scan: PipeScan
    others: tuple[Holder, ...]  # what processes that were not asked about hold of the same pipes
    processes: Mapping[int, Process]
    commands: Mapping[int, str]
    in_flight: Mapping[int, int]  # fds in sockets, by pid
    fills: Mapping[bytes, Fill]
    blocks: Blocks | None  # threads that are blocked on them
    samples: Sequence[Sample]  # all looks of a watch
    notes: Sequence[str]
    boot_s: int | None
    clock_ticks: int
    page_bytes: int
    soft_pages: int | None
    user_name: Callable[[int], str]

    @property
    def holders(self) -> list[Holder]:
        """Those asked about, then the others."""
        return [*self.scan.holders, *self.others]


class Collector:
    """Look once, or repeatedly for a watch, whose samples it keeps."""

    def __init__(self, host: Host, ask: Request, *, watch: bool = False) -> None:
        """Check the request. Raises NoSuchProcess, and NotPermitted where --fill would reach into another machine."""
        self.host, self.ask, self.watch = host, ask, watch
        if ask.fill and not host.is_own:
            where = f"{host.fs.proc} is another machine or PID namespace"
            raise NotPermitted(f"{where}; --fill has to reach into its processes")
        self._given = GivenPids(host, ask.pids, "pipes")
        self.samples: list[Sample] = []
        self._begun = host.monotonic()
        ends = ask.ends or ask.fill or (ask.owners and host.is_own)
        same_table: Callable[[int, int], bool] | None = None
        if ask.threads and host.is_own:
            from opskit.proc.kernel.syscalls import same_fd_table

            same_table = partial(host.fs.calls.ask, same_fd_table)
        self._scanner = PipeScanner(host.fs, ends=ends, fifos=ask.fifos, threads=ask.threads, same_fd_table=same_table)

    def look(self) -> Facts:
        """Read everything once. Raises NoSuchProcess when all that were asked for have ended, NotPermitted, NotSupported."""
        ask = self.ask._replace(pids=self._given.living()) if self.watch else self.ask
        host = self.host
        scan, all_others, sockets, asked = self._scan(ask)
        self._refuse_denied(ask, scan)
        if self.watch:
            self.samples.append(_sample(host, scan, host.monotonic() - self._begun))
        keys = {key for holder in scan.holders for key in holder.counts}
        others = tuple(only(holder, keys) for holder in all_others if not keys.isdisjoint(holder.counts))
        holders = [*scan.holders, *others]
        pids = {holder.pid for holder in holders}
        # Another machine's pids are not ours: their fds are never copied, so the capacities stay unknown.
        reach = host.is_own and (ask.fill or ask.owners)
        fills = self._fills(holders) if reach else {}
        fifos = {path: key for key, path in scan.fifo_paths.items()}
        blocks, ends = None, ask.ends or ask.fill
        looks = (
            host.is_own and ask.processes and (ends or not self.watch)
        )  # it takes a second: -w shows who gains pipes
        if looks and host.fs.has_rates:
            from opskit.collect.pipe_blocks import Watcher

            full = fills if ask.fill else {}
            blocks = Watcher(host, [*scan.holders, *all_others], full, fifos, asked).look(
                keys if ends and ask.everywhere else set()
            )
            pids |= {each.pid for each in blocks.opening}
        return Facts(
            ask, scan, others,
            processes={pid: host.process(pid) for pid in pids} if ask.processes else {},
            commands={pid: command_name(host.fs, pid) for pid in pids} if ask.commands else {},
            in_flight=fds_in_flight(host.fs, sockets) if ask.ends and _has_one_sided(holders) else {},
            fills=fills, blocks=blocks,
            samples=self.samples,
            notes=[
                *_notes(host, scan), *(_waiting(host, asked) if ask.pids and host.is_own and not ends else ()),
                *(["who is blocked is unknown: it takes two samples"] if looks and not host.fs.has_rates else ()),
            ],
            boot_s=host.fs.maybe(parse_boot_time, "stat") if self.watch else None,
            clock_ticks=host.clock_ticks, page_bytes=host.page_bytes,
            soft_pages=host.sysctl("fs", "pipe-user-pages-soft") if ask.owners else None,
            user_name=host.user_name,
        )  # fmt: skip

    def _scan(self, ask: Request) -> tuple[PipeScan, tuple[Holder, ...], Sequence[tuple[int, bytes, bytes]], list[int]]:
        """The scan, what all others hold, all sockets, and the processes that were asked about."""
        fs = self.host.fs
        wanted = list(dict.fromkeys(ask.pids)) if ask.pids else fs.pids()
        unknown: list[int] = []
        if ask.uids:
            uids = {pid: fs.maybe(real_uid, pid, "status") for pid in wanted}
            unknown = [] if fs.is_live else [pid for pid, uid in uids.items() if uid is None]
            wanted = [pid for pid in wanted if uids[pid] in ask.uids]
        scan = self._scanner.scan(wanted)
        scan.denied += unknown
        if not (ask.ends and ask.selective):
            return scan, (), scan.sockets, scan.scanned
        asked = list(scan.scanned)
        chosen = set(wanted)
        rest = self._scanner.scan(pid for pid in fs.pids() if pid not in chosen)
        scan.denied += rest.denied
        scan.vanished += rest.vanished
        scan.scanned += rest.scanned
        return scan, tuple(rest.holders), [*scan.sockets, *rest.sockets], asked

    def _refuse_denied(self, ask: Request, scan: PipeScan) -> None:
        """Raise for a process that was asked for by its PID and cannot be read, and for a copy without any fds."""
        host = self.host
        if scan.garbled and not scan.scanned:
            raise scan.garbled[0]
        if not host.fs.is_live and not scan.any_fd and (scan.scanned or scan.denied):
            remedy = "copy the links in each PID/fd too (cp -a)"
            raise NotSupported(f"{host.fs.proc} is a copy without file descriptors; {remedy}")
        for pid in ask.pids:
            if pid in scan.vanished and (not self.watch or set(ask.pids) <= set(scan.vanished)):
                raise NoSuchProcess(pid, "it ended during the scan")
            if pid in scan.denied and not host.fs.is_live:
                raise NotSupported(f"{host.fs.path(pid, 'fd')} is not in this copy: the pipes of {pid} are unknown")
            if pid in scan.denied:
                who = host.process(pid)
                remedy = how_to_be_allowed(host.fs, "CAP_SYS_PTRACE", "opskit", "pipes", pid, pid=pid)
                what = f"the file descriptors of {pid} ({who.command}, user {who.user or 'unknown'})"
                raise NotPermitted(f"cannot read {what}: permission denied; {remedy}")

    def _fills(self, holders: Sequence[Holder]) -> Mapping[bytes, Fill]:
        from opskit.proc.pipe_fill import read_fills

        return read_fills(self.host.fs, holders)


def _has_one_sided(holders: Iterable[Holder]) -> bool:
    """Whether some pipe has no read end or no write end: only then every socket's fdinfo is worth reading."""
    ends = [item for holder in holders for item in (holder.ends or {}).items()]
    return {key for key, end in ends if end.read_fds} != {key for key, end in ends if end.write_fds}


def _waiting(host: Host, pids: Sequence[int]) -> Iterator[str]:
    """What these processes wait for, and the command that names the other side."""
    from opskit.proc.pipe_waits import sleeping_on_pipes

    for wait in {(wait.pid, wait.call, wait.on): wait for wait in sleeping_on_pipes(host.fs, pids)}.values():
        does = "waits for data from" if wait.call == "read" else "waits to write to"
        look = shell.command("opskit", "pipes", wait.pid, "--ends", "--fill")
        yield f"{command_name(host.fs, wait.pid)}[{wait.pid}] {does} {wait.on.decode('ascii', 'replace')}; who is at its other end: {look}"


def _notes(host: Host, scan: PipeScan) -> list[str]:
    notes = list(_coverage(host, scan))
    if scan.garbled:
        notes.append(f"{len(scan.garbled)} of these have links that no kernel writes: {scan.garbled[0]}")
    if scan.remote_skipped:
        notes.append(
            f"not looked at, since a stat may hang: {plural(scan.remote_skipped, 'fd')} on network file systems or detached mounts"
        )
    if scan.copied_skipped:
        notes.append(f"FIFOs among {plural(scan.copied_skipped, 'fd')} on files are unknown: a copy has no file types")
    return notes


def _coverage(host: Host, scan: PipeScan) -> Iterable[str]:
    """Missing rights hide pipes from the counts. A process that is guarded from root is named where it may hold an end."""
    shown = more_rights_show_more(host.fs)
    return coverage_lines(host.fs, len(scan.scanned), scan.denied, len(scan.vanished), may_be_meant=shown)


def _sample(host: Host, scan: PipeScan, at_s: float) -> Sample:
    held: dict[int, set[bytes]] = {}
    fds: dict[bytes, int] = {}
    for holder in scan.holders:
        held.setdefault(holder.pid, set()).update(holder.counts)
        for key, count in holder.counts.items():
            fds[key] = fds.get(key, 0) + count
    pipes: dict[tuple[int, int], int] = {}
    commands: dict[tuple[int, int], str] = {}
    for pid in scan.scanned:
        stat = host.fs.maybe(parse_stat, pid, "stat")
        if stat is None:
            continue
        pipes[pid, stat.start_ticks] = len(held.get(pid, ()))
        if pid in held:
            commands[pid, stat.start_ticks] = command_name(host.fs, pid)
    return Sample(at_s, len(fds), sum(fds.values()), pipes, commands)
