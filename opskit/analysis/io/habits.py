"""What is wasteful in how threads read and write: tiny calls, a sync after each write, files that are deleted before they are stored.

A healthy busy program does none of these for long: a database reads pages, a log has lines, an agent's bursts are short. A server
that reads what its clients send, and wake-ups by eventfd or pipe, are tiny calls as well: for a finding the call must be on a file,
or ask for few bytes, and the thread must spend its time in the kernel for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.io.attribution import SYNCS, only_readable
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.analysis.finding import Severity
    from opskit.analysis.io.attribution import Use
    from opskit.collect.io.facts import Facts, File, Rates, Seen, Thread

TINY_READS, TINY_WRITES, SYNC, CANCELLED = "io-tiny-reads", "io-tiny-writes", "io-sync-dominates", "io-writes-cancelled"
_MANY_CALLS, _MANY_LINES = 10_000, 2_000  # a second
_TINY_READ, _TINY_WRITE, _SHORT_LINE = 64, 32, 512  # bytes of a call
_IN_KERNEL, _OF_ITS_CPU = 0.05, 0.25  # shares of the window, and of its CPU time, that a thread spends in the kernel
_VERY_TINY, _MOST_WAKE_UPS = 4, 300_000  # bytes; calls a second. Wake-ups by a pipe are one byte each
_SYNC_SHARE, _SOME_SYNC, _AMPLIFIED = 0.5, 0.1, 10.0
_EMPTY = 0.01  # bytes of a read
_FEWEST_LOOKS, _CALL_S = 10, 2e-6  # the CPU time of a call
_O_DSYNC = 0o10000  # a part of O_SYNC too
_CANCELLED_SHARE, _MUCH = 0.5, 1 << 20
_CALLS_OF = {TINY_READS: ("read", "pread64", "recvfrom"), TINY_WRITES: ("write", "pwrite64", "sendto")}


class Habit(NamedTuple):
    """One such habit of a thread. `file` None: unknown. `share`: of the window, that it costs the thread."""

    code: str
    severity: Severity
    thread: Thread
    file: File | None
    share: float | None
    seeks: bool = False


def habits_of(facts: Facts, uses: Mapping[int, Use]) -> list[Habit]:
    """All, of the most costly threads first."""
    found = []
    for thread in facts.threads:
        use = uses[thread.tid]
        found += [
            habit
            for habit in (
                _tiny_reads(facts, thread, use), _tiny_writes(thread, use), _sync(thread, use),
                _cancelled(thread, use),
            )
            if habit is not None
        ]  # fmt: skip
    return sorted(found, key=lambda habit: (-(habit.share or 0), -_calls(habit.thread), habit.thread.tid))


def _calls(thread: Thread) -> float:
    return thread.rates.reads + thread.rates.writes


def is_tiny(rates_per_s: float, mean: float | None, *, reads: bool) -> bool:
    """Whether so many calls of so few bytes are a habit to look at."""
    return rates_per_s >= _MANY_CALLS and mean is not None and mean < (_TINY_READ if reads else _TINY_WRITE)


def is_empty(rates: Rates) -> bool:
    """Whether its reads return nothing: at the end of a file, or without waiting."""
    return rates.read_bytes < _EMPTY * rates.reads


def _costs_cpu(thread: Thread) -> bool:
    """Whether calls are a large part of what a thread does, and of a CPU."""
    system = thread.system or 0.0
    return system >= max(_IN_KERNEL, _OF_ITS_CPU * (system + (thread.user or 0.0)))


def _tiny_reads(facts: Facts, thread: Thread, use: Use) -> Habit | None:
    rates = thread.rates
    if not is_tiny(rates.reads, rates.bytes_per_read, reads=True) or not _costs_cpu(thread):
        return None
    file = use.reads
    if file is not None and file.kind in ("file", "deleted"):
        # Where the position is set between reads, the records are spread over the file, and a buffer alone would not help.
        severity: Severity = "note" if use.seeks else "warning"
    else:
        asked, mean = _asked(thread, TINY_READS), rates.bytes_per_read or 0.0
        if asked is None and mean < _VERY_TINY and rates.reads >= _MOST_WAKE_UPS:
            # It never sleeps for them: there is always more to read. Where one file alone can be read, it is that one.
            only = only_readable(facts, mean)
            file, severity = file or only, "note" if only is None else "warning"
        elif asked is not None and asked < _TINY_READ:
            severity = "warning"
        else:  # it takes what there is: the rest of a small file, a request
            return None
    if is_empty(rates):  # some programs poll on purpose
        severity = "note"
    return Habit(TINY_READS, severity, thread, file, thread.system, use.seeks)


def _tiny_writes(thread: Thread, use: Use) -> Habit | None:
    rates, file = thread.rates, use.writes
    mean = rates.bytes_per_write
    if file is None or file.kind not in ("file", "deleted") or mean is None or not _costs_cpu(thread):
        return None
    if (sync_share(thread, use) or 0) >= _SOME_SYNC:
        return None
    if is_tiny(rates.writes, mean, reads=False):
        return Habit(TINY_WRITES, "warning", thread, file, thread.system)
    # Line by line is what a log is for: its reader wants the last line at once.
    if rates.writes >= _MANY_LINES and mean < _SHORT_LINE:
        return Habit(TINY_WRITES, "note", thread, file, thread.system)
    return None


def _asked(thread: Thread, code: str) -> int | None:
    """The most bytes that a call asked for in which it was seen; None: in none."""
    lengths = [each.length for each in thread.seen if each.call in _CALLS_OF[code] and each.length is not None]
    return max(lengths, default=None)


def is_synced(use: Use) -> bool:
    """Whether each write to the file waits until it is stored (O_SYNC, O_DSYNC)."""
    return use.writes is not None and bool((use.writes.flags or 0) & _O_DSYNC)


def sync_share(thread: Thread, use: Use) -> float | None:
    """The share of its time in fsync(2) or alike, or in a write to a file that was opened with O_SYNC; None: too few looks.

    Where a look finds it asleep, and the call that it reads next finds it running again, it was in the same mix of calls as in the
    other looks. Its time on a CPU in the kernel, but for what its calls need, belongs to them too.
    """
    if thread.looks < _FEWEST_LOOKS:
        return None
    asleep = thread.looks - sum(each.looks for each in thread.seen if each.call == "running")
    known = sum(each.looks for each in thread.seen if each.call != "running")
    in_sync = sum(each.looks for each in thread.seen if _is_sync(each, use))
    if not in_sync:
        return 0.0
    asleep_share = asleep / thread.looks
    in_kernel = max(0.0, (thread.system or 0) - _calls(thread) * _CALL_S)
    # The rest of the time it waited for a CPU.
    own = asleep_share + (thread.user or 0) + (thread.system or 0)
    return min(1.0, in_sync / known * (asleep_share + in_kernel) / own) if own else 0.0


def _is_sync(seen: Seen, use: Use) -> bool:
    return seen.call in SYNCS or (
        is_synced(use) and seen.call in _WRITES and use.writes is not None and seen.fd == use.writes.fd
    )


def sync_call(thread: Thread) -> str:
    """The one of fsync(2) and alike in which it was seen most often."""
    found = [each for each in thread.seen if each.call in SYNCS]
    return max(found, key=lambda each: each.looks).call if found else "fsync"


_WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")


def amplification(thread: Thread) -> float | None:
    """Bytes made dirty for each byte written: 1 for large writes, 4,096 / N for a sync after each N bytes; None: it wrote nothing."""
    rates = thread.rates
    return rates.disk_written_bytes / rates.written_bytes if rates.written_bytes else None


def _sync(thread: Thread, use: Use) -> Habit | None:
    share = sync_share(thread, use)
    if share is None or share < _SYNC_SHARE:
        return None
    amplified = (amplification(thread) or 0) > _AMPLIFIED
    # A database that commits waits for its log, in whole blocks; so does any program that was told to be safe.
    return Habit(SYNC, "warning" if amplified else "note", thread, use.writes, share)


def _cancelled(thread: Thread, use: Use) -> Habit | None:
    rates = thread.rates
    if rates.cancelled_bytes < _MUCH or rates.cancelled_bytes < _CANCELLED_SHARE * rates.disk_written_bytes:
        return None
    return Habit(CANCELLED, "note", thread, use.writes, None)
