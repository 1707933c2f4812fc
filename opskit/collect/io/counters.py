"""The I/O counters of a process and of each of its threads, and what was added to them in a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.io.facts import Rates
from opskit.errors import BadInput
from opskit.proc.files.io import ProcIo, parse_io
from opskit.proc.fs import GONE
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.host import Host

_NOTHING = ProcIo(0, 0)
_LARGE = 0.1
_MOST_BYTES = 1024  # of an `io` file


class Counted(NamedTuple):
    """The text of an `io` file, and when it was read. Most threads do nothing: their text stays the same, and is never parsed."""

    at_s: float
    text: bytes


class Reading(NamedTuple):
    """All counters of a process at one time. `process`: with its threads that have ended, and its children that were reaped."""

    at_s: float
    process: Counted
    threads: dict[int, Counted]


class Change(NamedTuple):
    """What a thread added in `elapsed_s`. `started`: its counters began within the window."""

    io: ProcIo
    elapsed_s: float
    started: bool = False

    @property
    def rates(self) -> Rates:
        """The same a second."""
        return rates_of(self.io, self.elapsed_s)


def read_counters(host: Host, pid: int) -> Reading:
    """Read them. Raises FileNotFoundError or ProcessLookupError where the process has ended, PermissionError."""
    fs, monotonic, read, path = host.fs, host.monotonic, host.fs.read_at, f"{host.fs.proc}/{pid}"
    at_s = monotonic()
    process = Counted(at_s, read(f"{path}/io", 0, _MOST_BYTES))
    threads = {}
    for tid in fs.tids(pid):
        try:
            threads[tid] = Counted(monotonic(), read(f"{path}/task/{tid}/io", 0, _MOST_BYTES))
        except GONE:
            continue
    return Reading(at_s, process, threads)


def changes(before: Reading, after: Reading) -> dict[int, Change]:
    """The threads whose counters moved between two readings."""
    found = {}
    for tid, now in after.threads.items():
        then = before.threads.get(tid)
        if then is not None and then.text == now.text:
            continue
        added = _added(then, now)
        # A new thread's counters began at some time in the window: as rates they are of the whole window, as the others are.
        begun_s = before.at_s if then is None or added is None else then.at_s
        change = Change(added or _parsed(now) or _NOTHING, now.at_s - begun_s, then is None or added is None)
        if any(change.io) and change.elapsed_s > 0:
            found[tid] = change
    return found


def total_rates(moved: Mapping[int, Change]) -> Rates:
    """Of all threads that live at the end, by their changes."""
    return Rates(*map(sum, zip(rates_of(_NOTHING, 1.0), *(change.rates for change in moved.values()))))


def ended_rates(before: Reading, after: Reading, moved: Mapping[int, Change]) -> Rates | None:
    """Of threads that ended in the window, and children that were reaped: what the process has beyond its threads; None: little, or unknown."""
    total = _added(before.process, after.process)
    elapsed_s = after.process.at_s - before.process.at_s
    if total is None or elapsed_s <= 0:
        return None
    living = ProcIo(*map(sum, zip(_NOTHING, *(change.io for change in moved.values()))))
    rest = total.since(living)
    # Both are read one after the other: only a part that is large for that is told.
    is_large = any(part > _LARGE * whole for part, whole in zip(rest, total))
    return rates_of(rest, elapsed_s) if is_large and any(rest) else None


def rates_of(io: ProcIo, elapsed_s: float) -> Rates:
    """The counters a second."""
    return Rates(
        io.reads / elapsed_s, io.writes / elapsed_s, io.read_bytes / elapsed_s, io.written_bytes / elapsed_s,
        io.disk_read_bytes / elapsed_s, io.disk_written_bytes / elapsed_s, io.cancelled_bytes / elapsed_s,
    )  # fmt: skip


def _added(then: Counted | None, now: Counted) -> ProcIo | None:
    """What was added; None: unknown, or less than before, which is another thread with that TID."""
    first, last = _parsed(then), _parsed(now)
    if first is None or last is None or any(new < old for new, old in zip(last, first)):
        return None
    return last.since(first)


def _parsed(counted: Counted | None) -> ProcIo | None:
    try:
        return None if counted is None else parse_io(counted.text.decode("ascii", "replace"))
    except BadInput:
        return None
