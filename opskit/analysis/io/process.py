"""Judge how one process reads and writes: rows, sentences, findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.finding import Entity, Finding, most_severe_first
from opskit.analysis.io.attribution import uses_of
from opskit.analysis.io.habits import CANCELLED, SYNC, TINY_READS, TINY_WRITES, habits_of
from opskit.analysis.io.host_words import waiting_words
from opskit.analysis.io.result import Result, Row
from opskit.analysis.io.troubles import PAGE_BYTES, blocked, disk_share, stuck_groups, thrashing, throttled
from opskit.analysis.io.waits import DEVICE
from opskit.analysis.io.words import file_words, habit_evidence, habit_words, limit_words, waits_words, why
from opskit.analysis.java_stack import path_in_java
from opskit.proc.files.mountinfo import REMOTE
from opskit.quantities import duration, percent, plural, size, whole
from opskit.shell import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opskit.analysis.io.attribution import Use
    from opskit.analysis.io.habits import Habit
    from opskit.analysis.io.troubles import Stuck
    from opskit.collect.io.facts import Facts, File, Rates, Thread

_HABITS = (TINY_READS, TINY_WRITES, SYNC, CANCELLED)
_MUCH = 1 << 20


def judge_process(facts: Facts) -> Result:
    """The answer for one process."""
    uses = uses_of(facts)
    habits = habits_of(facts, uses)
    findings = tuple(most_severe_first([*_stuck(facts, uses), *_cgroup(facts), *_habit_findings(facts, habits)]))
    rows = _rows(facts, uses, habits)
    verdict = tuple(_verdict(facts, findings, rows))
    return Result(facts, verdict, rows, (), (), findings, findings[0].next if findings else None)


def _process(facts: Facts) -> Entity:
    process = facts.process
    return Entity("process", process.pid if process else None, process.start_ticks if process else None)


def _thread(facts: Facts, thread: Thread) -> Entity:
    return Entity("thread", thread.tid, None, _process(facts))


def _pid(facts: Facts) -> int:
    return facts.process.pid if facts.process is not None else 0


def _rows(facts: Facts, uses: Mapping[int, Use], habits: list[Habit]) -> tuple[Row, ...]:
    """All threads: those with a finding first, then by calls or bytes."""
    worst = {habit.thread.tid: place for place, habit in reversed([*enumerate(habits)])}
    stuck = {thread.tid for group in stuck_groups(facts) for thread in group.threads}
    by_file = {habit.thread.tid: habit.file for habit in reversed(habits) if habit.file is not None}
    threads = sorted(
        facts.threads,
        key=lambda thread: (
            thread.tid not in stuck, worst.get(thread.tid, len(worst)), -_weight(thread), thread.tid,
        ),
    )  # fmt: skip
    return tuple(
        Row(each, by_file.get(each.tid) or _file(each, uses[each.tid]), why(each, uses[each.tid])) for each in threads
    )


def _weight(thread: Thread) -> float:
    rates = thread.rates
    return (
        rates.reads
        + rates.writes
        + (rates.read_bytes + rates.written_bytes + rates.disk_read_bytes + rates.disk_written_bytes) / PAGE_BYTES
    )


def _file(thread: Thread, use: Use) -> File | None:
    """What a thread reads or writes; of both the one with more bytes."""
    if use.reads is None or use.writes is None:
        return use.reads or use.writes
    return use.reads if thread.rates.read_bytes >= thread.rates.written_bytes else use.writes


def _stuck(facts: Facts, uses: Mapping[int, Use]) -> Iterator[Finding]:
    pid = _pid(facts)
    for group in stuck_groups(facts):
        thread = group.threads[0]
        alone = len(group.threads) == 1
        more = facts.stalled_total > len(facts.threads)  # than were looked at
        others = f"; {plural(facts.stalled_total, 'thread')} waited for storage at the begin" if more else ""
        who = thread.name if alone else f"{'at least ' * more}{plural(len(group.threads), 'thread')} ({thread.name}, …)"
        yield Finding(
            "io-stuck",
            group.severity,
            _thread(facts, thread) if alone else _process(facts),
            f"{who} {'has' if alone else 'have'} not run for {duration(group.for_s)}: {_stuck_place(group, uses[thread.tid])}",
            f"/proc/{pid}/task/{thread.tid}: asleep there in all of {plural(thread.looks, 'look')}, "
            f"nothing read or written, wchan {group.where or 'unknown'}{others}",
            next=command("cat", f"/proc/{pid}/task/{thread.tid}/stack"),
            share=1.0,
            window_s=facts.window_s,
        )


def _stuck_place(group: Stuck, use: Use) -> str:
    """`waits for a FUSE server (request_wait_answer), in read: fd 3 /mnt/x on fuse`."""
    thread = group.threads[0]
    call = next((each.call for each in thread.seen), None)
    file = use.reads or use.writes
    place = f": {file_words(file)}{f' on {file.device}' if file.device else ''}" if file is not None else ""
    waits = waiting_words(group.where)
    if (
        group.wait is not None
        and group.wait.kind == DEVICE
        and file is not None
        and (file.device or "").startswith(REMOTE)
    ):
        waits = f"waits for the server of {file.device} ({group.where})"  # its pages come from there
    return f"{waits}{f', in {call}' if call else ''}{place}"


def _cgroup(facts: Facts) -> Iterator[Finding]:
    thrash, limited = thrashing(facts), throttled(facts)
    if limited is not None:
        limit, thread = limited
        yield Finding(
            "io-cgroup-throttled",
            "warning",
            Entity("cgroup", limit.path),
            f"{thread.name} is throttled{waits_words(thread)}: {limit_words(limit)}",
            f"limits of {limit.path} (io.max, blkio.throttle): {limit.what} {limit.limit:,.0f}, used {limit.used or 0:,.0f} a second",
            share=min(1.0, (limit.used or 0) / limit.limit),
            window_s=facts.window_s,
        )
    if thrash is not None:
        cgroup, thread, does_harm = thrash
        total = facts.total.disk_read_bytes if facts.total is not None else 0.0
        yield Finding(
            "io-cache-thrash",
            "warning" if does_harm else "note",
            Entity("cgroup", cgroup.path),
            f"{thread.name} reads the same pages from disk again, {size(total)}/s{waits_words(thread)}: "
            f"the page cache of {cgroup.path} is too small, its memory limit is {size(cgroup.memory_limit_bytes)}",
            f"memory.stat of {cgroup.path}: {whole(cgroup.refaults)} refaults a second, {size(cgroup.cache_bytes)} of page cache; "
            f"{percent(disk_share(facts))} of what was read came from disk",
            next=command("opskit", "mem", _pid(facts)),
            share=disk_share(facts),
            window_s=facts.window_s,
        )


def _habit_findings(facts: Facts, habits: list[Habit]) -> Iterator[Finding]:
    """One for each kind, about the thread that it costs most."""
    pid = _pid(facts)
    for code in _HABITS:
        found = [habit for habit in habits if habit.code == code]
        found.sort(key=lambda habit: ("warning", "note").index(habit.severity))  # stable
        if not found:
            continue
        worst, more = found[0], len({habit.thread.tid for habit in found}) - 1
        others = f"; {plural(more, 'more thread does', 'more threads do')} the same" if more else ""
        java = facts.is_jvm and not facts.asked and code in (TINY_READS, TINY_WRITES, SYNC)
        yield Finding(
            code,
            worst.severity,
            _process(facts) if more else _thread(facts, worst.thread),
            habit_words(worst) + others,
            habit_evidence(worst, pid),
            next=command("opskit", "io", pid, "--ask")
            if java
            else command("opskit", "profile", pid)
            if code in (TINY_READS, TINY_WRITES)
            else None,
            share=worst.share,
            window_s=facts.window_s,
        )


def _verdict(facts: Facts, findings: tuple[Finding, ...], rows: tuple[Row, ...]) -> Iterator[str]:
    yield from (finding.summary for finding in findings[:2])
    if not findings:
        yield _summary(facts)
    thread = rows[0].thread if rows else None
    if findings and thread is not None and thread.frames:
        yield f"{thread.name} is in {path_in_java(thread.frames)}"


def _summary(facts: Facts) -> str:
    """What it does, where nothing is wrong."""
    process, total = facts.process, facts.total
    name = f"{process.pid} ({process.command})" if process is not None else "it"
    if total is None:
        return f"{name}: its I/O counters are unknown"
    words = [*_totals(total), *_uncalled(facts, total)]
    ended = [*_totals(facts.ended)] if facts.ended is not None else []
    if ended and _bytes(facts.ended) > max(_MUCH, _bytes(total)):
        own = f"{' and '.join(words)}; " if words else ""
        return f"{name} {own}its children and threads that ended: {' and '.join(ended)}: no problem found"
    if not words:
        return f"{name} has read and written nothing in {duration(facts.window_s)}"
    worst = max(facts.threads, key=blocked, default=None)
    waits = waits_words(worst) if worst is not None else ""
    return f"{name} {' and '.join(words)}{waits}: no problem found"


def _bytes(rates: Rates | None) -> float:
    return 0.0 if rates is None else rates.read_bytes + rates.written_bytes


def _totals(total: Rates) -> Iterator[str]:
    """`reads 120 MiB/s in 1,024 calls/s, 98 % from disk`."""
    if total.reads:
        share = min(1.0, total.disk_read_bytes / total.read_bytes) if total.read_bytes else 0.0
        from_disk = f", {percent(share)} from disk" if total.disk_read_bytes >= PAGE_BYTES and share else ""
        yield f"reads {size(total.read_bytes)}/s in {whole(total.reads)} calls/s{from_disk}"
    if total.writes:
        yield f"writes {size(total.written_bytes)}/s in {whole(total.writes)} calls/s"


def _uncalled(facts: Facts, total: Rates) -> Iterator[str]:
    """What is fetched for mapped files and swap, or by calls that the kernel does not count."""
    if total.disk_read_bytes > max(_MUCH, 2 * total.read_bytes):
        faults = any((thread.major_faults or 0) >= 1 for thread in facts.threads)
        how = "by page faults" if faults else "without read calls (AIO, io_uring)"
        yield f"fetches {size(total.disk_read_bytes)}/s from disk {how}"
