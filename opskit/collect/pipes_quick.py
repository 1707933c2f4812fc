"""Full pipes, missing ends of file and blocked opens on the whole machine, read from those threads alone that sleep in a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.fd import PIPE_PREFIX
from opskit.proc.pipe_sleepers import Sleepers, pipe_sleepers
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.collect.pipe_blocks import Blocks
    from opskit.collect.pipes import Facts
    from opskit.host import Host
    from opskit.proc.pipe_fill import Fill
    from opskit.proc.pipe_scan import Ends, Holder, PipeScan
    from opskit.proc.pipe_waits import Wait

_SETTLE_S = 0.1
_STANDARD_FDS = 3
_MOST_READERS = 50  # pipes whose readers are looked at


class Held(NamedTuple):
    """The writers of a full pipe: bytes that they have ever written to anything, and for how long they have been blocked; None: unknown."""

    written_bytes: int | None
    blocked_s: float | None


class QuickFacts(NamedTuple):
    """`facts`: of the pipes in which threads sleep; None where there are none. `held`: by full pipe. `denied`: processes not read."""

    threads: int
    unread: int
    known: bool
    facts: Facts | None = None
    held: Mapping[bytes, Held] = {}

    @property
    def denied(self) -> int:
        """Processes whose file descriptors could not be read."""
        return len(self.facts.scan.denied) if self.facts else 0


def collect_quick(host: Host, pids: Sequence[int], window_s: float) -> QuickFacts:
    """Look at all threads; where some sleep in pipes or in open() of FIFOs, watch them for the window."""
    fs = host.fs
    sleepers = pipe_sleepers(fs, fs.pids())
    about = QuickFacts(sleepers.threads, sleepers.unread, sleepers.known)
    threads = dict.fromkeys((*sleepers.writing, *sleepers.reading))
    if not threads and not sleepers.opening:
        return about
    from opskit.proc.pipe_waits import wait_of

    first = [wait_of(fs, *thread, {}) for thread in threads]
    waits = [wait for wait in first if wait.call in ("read", "write")]
    if host.can_look_after(_SETTLE_S):
        host.sleep(_SETTLE_S)
        waits = [wait for wait in waits if wait_of(fs, wait.pid, wait.tid, {}) == wait]
    if not waits and not sleepers.opening:
        return about
    scan = _scan(host, waits, sleepers)
    fifos = {path: key for key, path in scan.fifo_paths.items()}
    waits = [wait._replace(on=fifos.get(wait.on, wait.on)) for wait in waits]
    asked = _pipes_of(scan.holders, pids)
    full = {wait.on for wait in waits if wait.call == "write" and (not pids or wait.on in asked)}
    empty = {key for key in _suspects(host, scan, waits, sleepers) if not pids or key in asked}
    opening = [pid for pid, _ in sleepers.opening if not pids or pid in pids]
    if not (full or empty or opening):
        return about
    from opskit.collect.pipe_blocks import Watcher
    from opskit.proc.pipe_fill import Fill
    from opskit.proc.pipe_scan import only

    holders = [only(holder, full | empty) for holder in scan.holders if not (full | empty).isdisjoint(holder.counts)]
    scan.tables = holders
    fills = dict.fromkeys(full, Fill(queued_bytes=1))  # a thread that sleeps in a write proves that it is full
    settle_s = (_SETTLE_S / 2, max(0.0, window_s - 1.5 * _SETTLE_S))
    blocks = Watcher(host, holders, fills, fifos, opening, settle_s).look(empty)
    return about._replace(facts=_facts(host, scan, fills, blocks), held=_held(host, blocks))


def _pipes_of(holders: Iterable[Holder], pids: Sequence[int]) -> set[bytes]:
    return {key for holder in holders if holder.pid in pids for key in holder.counts}


def _scan(host: Host, waits: Sequence[Wait], sleepers: Sleepers) -> PipeScan:
    """The holders of the pipes. Without a blocked writer, processes that sleep on a timer are read only where the others leave a question open."""
    from opskit.proc.pipe_scan import PipeScanner
    from opskit.proc.pipe_waits import sides_of

    pids = host.fs.pids()
    scanner = PipeScanner(host.fs, ends=True, fifos=any(not wait.on.startswith(PIPE_PREFIX) for wait in waits))
    if sleepers.opening or any(wait.call == "write" or not wait.on.startswith(PIPE_PREFIX) for wait in waits):
        return scanner.scan(pids)
    scan = scanner.scan(pid for pid in pids if pid not in sleepers.timed)
    are_known = {wait.on for wait in waits} <= sides_of(scan.holders).writers.keys()
    if are_known and not _suspects(host, scan, waits, sleepers):
        return scan
    rest = scanner.scan(pid for pid in pids if pid in sleepers.timed)
    scan.tables += rest.tables
    scan.denied += rest.denied
    return scan


def _suspects(host: Host, scan: PipeScan, waits: Sequence[Wait], sleepers: Sleepers) -> list[bytes]:
    """Empty pipes whose writers all sleep, or are the readers themselves, and none of them is where it belongs: it may write later."""
    from opskit.proc.lineage import is_adopted
    from opskit.proc.pipe_waits import sides_of

    reading = dict.fromkeys(wait.on for wait in waits if wait.call == "read")
    writers = sides_of(scan.holders).writers if reading else {}
    found = {key for key in reading if key in writers and writers[key] <= sleepers.asleep}
    for holder in scan.holders:
        own = [key for key in holder.counts if key in found] if holder.pid in sleepers.timed else []
        if own and not is_adopted(host.fs, holder.pid):
            found -= {key for key in own if _is_standard((holder.ends or {})[key])}
    return _without_woken(found, waits, writers)[:_MOST_READERS]


def _without_woken(found: set[bytes], waits: Iterable[Wait], writers: Mapping[bytes, set[int]]) -> list[bytes]:
    """Leave out the pipes of which a writer reads another pipe itself that is no suspect: what comes there may make it write."""
    reads: dict[int, set[bytes]] = {}
    for wait in waits:
        if wait.call == "read":
            reads.setdefault(wait.pid, set()).add(wait.on)
    left = set(found)
    while woken := {key for key in left if any(reads.get(pid, set()) - left for pid in writers[key])}:
        left -= woken
    return sorted(left)


def _is_standard(end: Ends) -> bool:
    """Whether a process has a write end on a standard stream, or more than once: not by an accident of fork()."""
    return end.write_fds > 0 and ((end.read_fds, end.write_fds) != (0, 1) or end.fd < _STANDARD_FDS)


def _facts(host: Host, scan: PipeScan, fills: Mapping[bytes, Fill], blocks: Blocks) -> Facts:
    from opskit.collect.pipes import Facts, Request

    pids = {holder.pid for holder in scan.holders} | {each.pid for each in blocks.opening}
    return Facts(
        Request(processes=True, ends=True, fill=True), scan, (),
        processes={pid: host.process(pid) for pid in pids}, commands={}, in_flight={}, fills=fills, blocks=blocks,
        samples=(), notes=(), boot_s=None, clock_ticks=host.clock_ticks, page_bytes=host.page_bytes, soft_pages=None,
        user_name=host.user_name,
    )  # fmt: skip


def _held(host: Host, blocks: Blocks) -> dict[bytes, Held]:
    """By full pipe what is known of its blocked writers."""
    from opskit.proc.files.io import parse_io
    from opskit.proc.files.task_sched import parse_last_ran_ms

    fs = host.fs
    now_ms = fs.maybe(parse_last_ran_ms, "thread-self", "sched")
    found: dict[bytes, Held] = {}
    for wait in blocks.writing:
        counters = fs.maybe(parse_io, wait.pid, "io")
        ran_ms = fs.maybe(parse_last_ran_ms, wait.pid, "task", wait.tid, "sched")
        blocked_s = None if now_ms is None or ran_ms is None else (now_ms - ran_ms) / 1000
        written = counters and counters.written_bytes
        before = found.get(wait.on, Held(0, blocked_s))
        found[wait.on] = Held(
            None if written is None or before.written_bytes is None else before.written_bytes + written,
            None if blocked_s is None or before.blocked_s is None else min(blocked_s, before.blocked_s),
        )
    return found
