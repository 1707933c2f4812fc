"""Sentences about how a process reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.io.attribution import Use
from opskit.analysis.io.habits import (
    CANCELLED,
    SYNC,
    TINY_READS,
    amplification,
    is_empty,
    is_synced,
    is_tiny,
    sync_call,
    sync_share,
)
from opskit.analysis.io.host_words import bytes_words, waiting_words
from opskit.analysis.io.troubles import blocked, in_d
from opskit.quantities import percent, plural, size, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.io.habits import Habit
    from opskit.collect.io.facts import File, IoLimit, Thread

_PATHS = ("file", "deleted", "device", "directory", "fifo")
_OFTEN, _SOME, _MUCH = 0.5, 0.1, 1 << 20
_WHAT = {"rbps": "reads", "wbps": "writes", "riops": "read requests", "wiops": "write requests"}


def file_words(file: File | None) -> str:
    """`fd 4 /data/lines.txt`, `fd 7 socket:[8121]`."""
    return "" if file is None else f"fd {file.fd} {file.path}"


def habit_words(habit: Habit) -> str:
    """`csv-import-worker-1 does 1,903,808 reads/s of 1.0 byte: fd 4 /data/lines.txt; wrap it in a buffer`."""
    thread, rates, file = habit.thread, habit.thread.rates, habit.file
    place = f": {file_words(file)}" if file is not None else ""
    if habit.code == SYNC:
        advice = "write more before each sync" if habit.severity == "warning" else "its pace is that of the storage"
        where = "writes with O_SYNC" if file is not None and is_synced(Use(writes=file)) else sync_call(thread)
        # msync(), and threads that sync what others write.
        done = f": {whole(rates.writes)} writes/s of {bytes_words(rates.bytes_per_write or 0)}" if rates.writes else ""
        return f"{thread.name} spends {percent(habit.share)} of its time in {where}{done}{place}; {advice}"
    if habit.code == CANCELLED:
        return f"{thread.name} deletes {size(rates.cancelled_bytes)}/s before it is stored, of {size(rates.disk_written_bytes)}/s written{place}"
    if habit.code == TINY_READS and is_empty(rates):
        return f"{thread.name} does {whole(rates.reads)} reads/s that return nothing{place}; it polls: wait for an event instead"
    if habit.code == TINY_READS:
        done = f"{thread.name} does {whole(rates.reads)} reads/s of {bytes_words(rates.bytes_per_read or 0)}"
        if file is None:
            return f"{done}; which fd is unknown: pread, a pipe or a socket"
        return f"{done}{place}; {'it seeks between them: map the file or cache it' if habit.seeks else 'wrap it in a buffer'}"
    done = f"{thread.name} does {whole(rates.writes)} writes/s of {bytes_words(rates.bytes_per_write or 0)}"
    return f"{done}{place}; {'wrap it in a buffer' if habit.severity == 'warning' else 'a buffer would save calls'}"


def habit_evidence(habit: Habit, pid: int) -> str:
    """What was read, and where."""
    thread, rates = habit.thread, habit.thread.rates
    place = f"/proc/{pid}/task/{thread.tid}"
    if habit.code == SYNC:
        seen = f"{place}/syscall, stat: asleep in it in {percent(_asleep(thread))} of {plural(thread.looks, 'look')}, {percent(thread.system)} of a CPU in the kernel"
        return f"{seen}; io: {size(rates.written_bytes)}/s written made {size(rates.disk_written_bytes)}/s dirty"
    if habit.code == CANCELLED:
        return f"{place}/io: cancelled_write_bytes and write_bytes"
    kernel = f"stat: {percent(thread.system)} of a CPU in the kernel" if thread.system is not None else "stat unknown"
    calls, moved = (rates.reads, rates.read_bytes) if habit.code == TINY_READS else (rates.writes, rates.written_bytes)
    return f"{place}/io: {whole(calls)} calls and {whole(moved)} bytes a second; {kernel}"


def _asleep(thread: Thread) -> float:
    running = sum(each.looks for each in thread.seen if each.call == "running")
    return 1 - running / thread.looks if thread.looks else 0.0


def limit_words(limit: IoLimit) -> str:
    """`its cgroup /app may do 1.0 MiB/s of reads on vda`."""
    per_s = f"{size(limit.limit)}/s" if limit.what.endswith("bps") else f"{whole(limit.limit)}/s"
    return f"its cgroup {limit.path} may do {per_s} of {_WHAT.get(limit.what, limit.what)} on {limit.device}"


def why(thread: Thread, use: Use) -> str:
    """What a thread suffers from, or what is unusual about it, in a few words; empty: nothing."""
    return "; ".join(_whys(thread, use))


def _whys(thread: Thread, use: Use) -> Iterator[str]:
    rates = thread.rates
    if is_tiny(rates.reads, rates.bytes_per_read, reads=True):
        yield f"{bytes_words(rates.bytes_per_read or 0)} a read"
    if is_tiny(rates.writes, rates.bytes_per_write, reads=False):
        yield f"{bytes_words(rates.bytes_per_write or 0)} a write"
    share = sync_share(thread, use)
    if share is not None and share >= _SOME:
        yield f"{'O_SYNC' if is_synced(use) else f'in {sync_call(thread)}'} {percent(share)}"
        amplified = amplification(thread)
        if amplified is not None and amplified >= 2:
            yield f"{amplified:,.0f} bytes stored for each written"
    elif in_d(thread) >= _SOME:
        yield f"{waiting_words(thread.stalled[0].where)}, {percent(in_d(thread))} of looks"
    if rates.disk_read_bytes >= max(_MUCH, _SOME * rates.read_bytes):
        faults = (thread.major_faults or 0) >= 1 and rates.disk_read_bytes > 2 * rates.read_bytes
        from_disk = min(1.0, rates.disk_read_bytes / rates.read_bytes) if rates.read_bytes else 1.0
        yield f"{size(rates.disk_read_bytes)}/s by page faults" if faults else f"{percent(from_disk)} from disk"
    if rates.cancelled_bytes >= max(_MUCH, _OFTEN * rates.disk_written_bytes):
        yield "deletes what it wrote"
    if thread.started:
        yield "started in the window"


def waits_words(thread: Thread) -> str:
    """`, 81 % of the time waiting for a device`; empty where that is little."""
    share = blocked(thread)
    return f", {percent(share)} of the time waiting for storage" if share >= _SOME else ""
