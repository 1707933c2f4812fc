"""What every process of the machine read and wrote in a window, and which threads are in state D.

/proc/PID/io has the counters of a process, of its threads that ended and, from the moment it reaps a child, of the whole life of that
child: a shell seems to read what its commands have read. A change of `cminflt` in /proc/PID/stat tells that a child was reaped.
The counters of a process that has, or had, children are therefore those of its threads; the rest is its children's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.io.counters import rates_of
from opskit.errors import BadInput
from opskit.proc.files.io import ProcIo, parse_io
from opskit.proc.files.stat import ProcStat, parse_stat
from opskit.proc.fs import DENIED, GONE
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opskit.collect.io.facts import Rates
    from opskit.host import Host
    from opskit.proc.fs import ProcFS

_NOTHING = ProcIo(0, 0)
_MOST_THREADS = 4096  # of one process whose threads are read
_DEEPEST = 64
_TRIES = 3


class Seen(NamedTuple):
    """One process at `at_s`. `io`: with its children that were reaped; None: it may not be read. `threads`: their own; None: not read."""

    at_s: float
    stat: ProcStat
    io: ProcIo | None
    threads: Mapping[int, ProcIo] | None


class Scan(NamedTuple):
    """All processes at one time. `denied`: those whose counters may not be read; `vanished`: how many ended meanwhile."""

    processes: Mapping[int, Seen]
    denied: tuple[int, ...]
    vanished: int


class Done(NamedTuple):
    """What a process did. `own` None: unknown. `children`: what those did that it reaped; None: it reaped none."""

    own: Rates | None
    children: Rates | None = None


def scan(host: Host, stats: Mapping[int, ProcStat]) -> Scan:
    """Read the counters of these processes; kernel threads have none."""
    parents = {stat.ppid for stat in stats.values()}
    found, denied, vanished = {}, [], 0
    for pid, stat in stats.items():
        if stat.is_kernel_thread:
            found[pid] = Seen(0.0, stat, None, None)
            continue
        try:
            found[pid] = _read(host, pid, stat, has_children=pid in parents or bool(stat.children_minor_faults))
        except DENIED:
            denied.append(pid)
            found[pid] = Seen(0.0, stat, None, None)
        except (*GONE, BadInput):
            vanished += 1
    return Scan(found, tuple(denied), vanished)


def _read(host: Host, pid: int, stat: ProcStat, *, has_children: bool) -> Seen:
    """Read one process. A child must not be reaped between the parts: they would not fit together."""
    fs = host.fs
    for _ in range(_TRIES):
        seen = Seen(
            host.monotonic(), stat, fs.load(parse_io, pid, "io"), _threads(fs, pid, stat) if has_children else None
        )
        if not has_children:
            break
        stat = fs.load(parse_stat, pid, "stat")
        if stat.children_minor_faults == seen.stat.children_minor_faults:
            break
    return seen


def _threads(fs: ProcFS, pid: int, stat: ProcStat) -> dict[int, ProcIo] | None:
    if stat.threads > _MOST_THREADS:
        return None
    try:
        tids = fs.tids(pid)
    except (*GONE, DENIED):
        return None
    read = {tid: fs.maybe(parse_io, pid, "task", tid, "io") for tid in tids}
    return {tid: io for tid, io in read.items() if io is not None}


def done(before: Scan, after: Scan, window_s: float) -> dict[int, Done]:
    """What each process did between two scans; one that is new began with 0."""
    children = _children(before)
    return {pid: _done(before, after, pid, children, window_s) for pid in after.processes}


def _done(before: Scan, after: Scan, pid: int, children: Mapping[int, list[int]], window_s: float) -> Done:
    now, then = after.processes[pid], before.processes.get(pid)
    if then is not None and then.stat.start_ticks != now.stat.start_ticks:
        then = None
    if now.io is None or (then is not None and then.io is None):
        return Done(None)
    elapsed_s = window_s if then is None else max(now.at_s - then.at_s, 1e-6)
    first = then.io if then is not None and then.io is not None else _NOTHING
    whole = now.io.since(first)
    if now.stat.children_minor_faults == (0 if then is None else then.stat.children_minor_faults):
        return Done(rates_of(whole, elapsed_s))
    if now.threads is None or (then is not None and then.threads is None and then.stat.threads > 1):
        return Done(None)
    own = _of_threads({} if then is None else then.threads, now.threads, first)
    rest = whole.since(own)
    for gone in _gone(before, after, children, pid):  # without what they had done before the window
        rest = rest.since(before.processes[gone].io or _NOTHING)
    return Done(rates_of(own, elapsed_s), rates_of(rest, elapsed_s) if any(rest) else None)


def _of_threads(before: Mapping[int, ProcIo] | None, after: Mapping[int, ProcIo], first: ProcIo) -> ProcIo:
    """What the threads added; without a reading of each before, those had the counters of the process, which had no children."""
    if before is None:
        return _sum(after.values()).since(first)
    return _sum(now.since(before.get(tid, _NOTHING)) for tid, now in after.items())


def _sum(counted: Iterable[ProcIo]) -> ProcIo:
    return ProcIo(*map(sum, zip(_NOTHING, *counted)))


def _children(scan: Scan) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for pid, seen in scan.processes.items():
        found.setdefault(seen.stat.ppid, []).append(pid)
    return found


def _gone(before: Scan, after: Scan, children: Mapping[int, list[int]], pid: int) -> list[int]:
    """The descendants of a process that have ended, each below others that have."""
    gone: list[int] = []
    level = [pid]
    for _ in range(_DEEPEST):
        level = [child for parent in level for child in children.get(parent, ()) if _has_ended(before, after, child)]
        if not level:
            break
        gone += level
    return gone


def _has_ended(before: Scan, after: Scan, pid: int) -> bool:
    now = after.processes.get(pid)
    return now is None or now.stat.start_ticks != before.processes[pid].stat.start_ticks


def read_stats(fs: ProcFS, pids: Iterable[int]) -> dict[int, ProcStat]:
    """The processes that have not ended."""
    found = ((pid, fs.maybe(parse_stat, pid, "stat")) for pid in pids)
    return {pid: stat for pid, stat in found if stat is not None}
