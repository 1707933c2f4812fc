"""Judge whether threads get the CPU when they want it, and what takes it from them. Pure.

What counts is how long a thread waits. Involuntary switches alone are no sign of too few CPUs: a thread that is woken up takes the CPU
from the one that wakes it, on an idle machine too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.cswitch.causes import (
    OUTNUMBERED,
    PING_PONG,
    PINNED,
    SOFTIRQS,
    STEAL,
    cause_of,
    pairs,
    takes_what_is_left,
)
from opskit.analysis.cswitch.findings import of_machine, of_pair, of_thread
from opskit.analysis.cswitch.result import ProcessRow, Result, Row
from opskit.analysis.cswitch.sentences import Words
from opskit.analysis.finding import most_severe_first
from opskit.quantities import duration, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.cswitch.causes import Pair
    from opskit.analysis.finding import Finding
    from opskit.collect.cswitch.facts import Facts, ProcessWaits, Thread

_NOTICED = 0.01  # of the window: a shorter wait is none
_LASTING = 0.5  # of the looks of a watch


def judge(facts: Facts, samples: Sequence[Facts] = ()) -> Result:
    """What is concluded of one window. `samples`: the looks of a watch so far, with this one: a warning holds in half of them."""
    result = _of_machine(facts) if facts.process is None else _of_process(facts)
    return result._replace(findings=tuple(_lasting(result.findings, samples)))


def _lasting(findings: Sequence[Finding], samples: Sequence[Facts]) -> Iterator[Finding]:
    """The findings; a note instead of a warning where most other looks of the watch do not have it: a collection, or a burst."""
    warned = any(finding.severity != "note" for finding in findings)
    earlier = [{(each.code, each.entity) for each in judge(facts).findings} for facts in samples[:-1] if warned]
    for finding in findings:
        seen = sum((finding.code, finding.entity) in found for found in earlier)
        is_burst = bool(earlier) and 1 + seen < _LASTING * len(samples)
        yield finding._replace(severity="note") if is_burst else finding


def _of_process(facts: Facts) -> Result:
    found = pairs(facts)[:1]
    rows = sorted((_row(facts, thread, found) for thread in facts.threads), key=_longest_first)
    words = Words(facts)
    caused = (
        [(row, of_thread(words, row, facts.process)) for row in _first_of_each_cause(rows)] if facts.process else []
    )
    worst = _worst(rows, caused)
    verdict = [*_said(words, worst), *(words.pair(pair) for pair in found)]
    findings = [finding for _, finding in caused if finding is not None]
    findings += [of_pair(words, pair, facts.process) for pair in found if facts.process]
    findings = most_severe_first(findings)
    following = next((each.next for each in findings if each.next), None)
    if following is None and worst is not None and worst.why:
        following = words.next_of(worst)
    is_crowded = worst is not None and worst.why in (OUTNUMBERED, PINNED)
    others = [ProcessRow(waits) for waits in facts.processes] if is_crowded else []
    return Result(facts, tuple(verdict), tuple(rows), tuple(others), tuple(findings), following)


def _row(facts: Facts, thread: Thread, found: Sequence[Pair]) -> Row:
    cause = cause_of(facts, thread)
    if not cause and any(thread.tid in (pair.first.tid, pair.second.tid) for pair in found):
        cause = PING_PONG
    return Row(thread, cause)


def _longest_first(row: Row) -> tuple[float, float, int]:
    thread = row.thread
    return -(thread.waiting or 0.0), -thread.running, thread.tid


def _first_of_each_cause(rows: Sequence[Row]) -> list[Row]:
    """The threads that lose most by each cause, of those that want more than what others leave."""
    found: dict[str, Row] = {}
    for row in _wanting(rows):
        if row.why and row.why != PING_PONG:
            found.setdefault(row.why, row)
    return [*found.values()]


def _wanting(rows: Sequence[Row]) -> Sequence[Row]:
    return [row for row in rows if not takes_what_is_left(row.thread)] or rows


def _worst(rows: Sequence[Row], caused: Sequence[tuple[Row, Finding | None]]) -> Row | None:
    """The thread that the answer is about: one with a warning, else the longest wait that has a cause, else the longest one."""
    warned = [row for row, finding in caused if finding is not None and finding.severity != "note"]
    first = next(iter(_wanting(rows)), None)
    if first is not None and first.why and not warned:
        return first
    return next(iter((*warned, *(row for row, _ in caused))), first)


def _said(words: Words, worst: Row | None) -> Iterator[str]:
    """The answer about a process."""
    facts, of = words.facts, words.process
    if worst is None:
        whose = "its thread" if facts.all_threads == 1 else f"none of its {plural(facts.all_threads, 'thread')}"
        neither = "neither ran nor waited" if facts.all_threads == 1 else "ran or waited"
        yield f"{of}: {whose} {neither} for a CPU in {duration(facts.window_s)}."
        return
    if worst.why and worst.why != PING_PONG:
        yield words.thread(worst)
        return
    share = worst.thread.waiting
    if share is None:
        yield f"{of}: how long its threads wait for a CPU is unknown."
        return
    name = words.name(worst.thread)
    if share < _NOTICED:
        yield f"{of}: no thread waits for a CPU: at most {percent(share)} of the time ({name})."
    else:
        yield f"{of}: the longest wait for a CPU is {percent(share)} of the time ({name}){words.no_cause(worst.thread)}."


def _of_machine(facts: Facts) -> Result:
    rows = [
        ProcessRow(waits, cause_of(facts, waits.worst) if waits.worst is not None else "") for waits in facts.processes
    ]
    rows.sort(key=lambda row: (-(row.waits.waiting or 0.0), -row.waits.running, row.waits.process.pid))
    words = Words(facts)
    caused: dict[str, ProcessRow] = {}
    for row in rows:
        if row.why and row.waits.worst is not None and not takes_what_is_left(row.waits.worst):
            caused.setdefault(row.why, row)
    by_row = [(row, _of_row(words, row)) for row in caused.values()]
    verdict = [*_said_of_machine(words, rows, [row for row, finding in by_row if finding is not None])]
    findings = most_severe_first([finding for _, finding in by_row if finding is not None])
    following = next((each.next for each in findings if each.next), None)
    if following is None and by_row:
        following = words.look_at(by_row[0][0].waits.process)
    return Result(facts, tuple(verdict), (), tuple(rows), tuple(findings), following)


def _of_row(words: Words, row: ProcessRow) -> Finding | None:
    """About the worst thread of a process; where threads outnumber the CPUs, about the machine."""
    waits = row.waits
    if row.why == OUTNUMBERED or waits.worst is None:
        return of_machine(words, row)
    return of_thread(words, Row(waits.worst, row.why), waits.process, is_machine=True)


def _said_of_machine(words: Words, rows: Sequence[ProcessRow], found: Sequence[ProcessRow]) -> Iterator[str]:
    """The answer about the machine. `found`: the rows that have a finding."""
    if not rows:
        yield f"No process ran or waited for a CPU in {duration(words.facts.window_s)}."
        return
    first = rows[0]
    taken = [row for row in found if row.why in (SOFTIRQS, STEAL) or (row.why != OUTNUMBERED and row is not first)]
    for row in taken:
        if row.waits.worst is not None:
            yield words.thread(Row(row.waits.worst, row.why), row.waits.process)
    if all(row.waits.waiting is None for row in rows):
        yield "How long processes wait for a CPU is unknown."
        return
    longest = _longest(rows)
    if longest is None or (longest.worst.waiting or 0.0 if longest.worst else 0.0) < _NOTICED:
        most = longest or first.waits
        share = (most.worst.waiting if most.worst else most.waiting) or 0.0
        if not taken:
            yield f"No process waits for a CPU: the most is {percent(share)} ({most.process.pid}, {most.process.command})."
        return
    yield words.waits_most(first)


def _longest(rows: Sequence[ProcessRow]) -> ProcessWaits | None:
    """The process with the thread that waits longest."""
    known = [row.waits for row in rows if row.waits.worst is not None]
    return max(known, key=lambda waits: (waits.worst.waiting or 0.0) if waits.worst else 0.0) if known else None
