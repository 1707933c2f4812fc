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
    cause_of,
    pairs,
    takes_what_is_left,
)
from opskit.analysis.cswitch.findings import findings_of
from opskit.analysis.cswitch.result import ProcessRow, Result, Row
from opskit.analysis.cswitch.sentences import Words
from opskit.quantities import duration, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opskit.analysis.cswitch.causes import Pair
    from opskit.analysis.finding import Finding
    from opskit.collect.cswitch.facts import Facts, ProcessWaits, Thread

_NOTICED = 0.01  # of the window: a shorter wait is none
_LASTING = 0.5  # of the looks of a watch


def judge(facts: Facts, samples: Sequence[Facts] = ()) -> Result:
    """What is concluded of one window. `samples`: the looks of a watch so far, with this one: a warning holds in half of them."""
    result = _of_machine(facts) if facts.process is None else _of_process(facts)
    return result._replace(findings=tuple(_lasting(result.findings, samples)))


def _lasting(findings: Iterable[Finding], samples: Sequence[Facts]) -> Iterator[Finding]:
    """The findings; a note instead of a warning where most other looks of the watch do not have it: a collection, or a burst."""
    earlier = samples[:-1]
    for finding in findings:
        seen = 0
        if finding.severity != "note" and earlier:
            about = (finding.code, finding.entity)
            seen = sum(any((each.code, each.entity) == about for each in judge(facts).findings) for facts in earlier)
        is_burst = bool(earlier) and 1 + seen < _LASTING * len(samples)
        yield finding._replace(severity="note") if is_burst and finding.severity != "note" else finding


def _of_process(facts: Facts) -> Result:
    found = pairs(facts)
    rows = sorted((_row(facts, thread, found) for thread in facts.threads), key=_longest_first)
    words, worst = Words(facts), _worst(rows)
    verdict = [*_said(words, worst), *(words.pair(pair) for pair in found[:1])]
    findings = findings_of(words, worst, found[:1])
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


def _worst(rows: Sequence[Row]) -> Row | None:
    """The thread that the answer is about: the longest wait of those that want more than what others leave, then a thread that loses its CPU unseen."""
    wanting = [row for row in rows if not takes_what_is_left(row.thread)] or list(rows)
    if not wanting:
        return None
    first = wanting[0]
    caused = [row for row in wanting if row.why and row.why != PING_PONG]
    if not first.why and caused:
        return caused[0]
    return first


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
    caused = next(
        (row for row in rows if row.why and row.waits.worst and not takes_what_is_left(row.waits.worst)), None
    )
    verdict = [*_said_of_machine(words, rows, caused)]
    findings = findings_of(words, None, (), caused)
    following = next((each.next for each in findings if each.next), None)
    if following is None and caused is not None:
        following = words.look_at(caused.waits.process)
    return Result(facts, tuple(verdict), (), tuple(rows), tuple(findings), following)


def _said_of_machine(words: Words, rows: Sequence[ProcessRow], caused: ProcessRow | None) -> Iterator[str]:
    """The answer about the machine."""
    if not rows:
        yield f"No process ran or waited for a CPU in {duration(words.facts.window_s)}."
        return
    if all(row.waits.waiting is None for row in rows):
        yield "How long processes wait for a CPU is unknown."
        return
    first = rows[0]
    longest = _longest(rows)
    if longest is None or (longest.worst.waiting or 0.0 if longest.worst else 0.0) < _NOTICED:
        most = longest or first.waits
        share = (most.worst.waiting if most.worst else most.waiting) or 0.0
        yield f"No process waits for a CPU: the most is {percent(share)} ({most.process.pid}, {most.process.command})."
        return
    if caused is not None and caused.why != OUTNUMBERED and caused is not first and caused.waits.worst is not None:
        yield words.thread(Row(caused.waits.worst, caused.why), caused.waits.process)
    yield words.waits_most(first)


def _longest(rows: Sequence[ProcessRow]) -> ProcessWaits | None:
    """The process with the thread that waits longest."""
    known = [row.waits for row in rows if row.waits.worst is not None]
    return max(known, key=lambda waits: (waits.worst.waiting or 0.0) if waits.worst else 0.0) if known else None
