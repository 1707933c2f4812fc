"""Judge JVMs by a window of a second. Pure.

What a second shows may be a moment: a pause or two, a start, a burst. A share is a warning where the window alone is plain, or where
the counters since the JVM's start say the same; otherwise it is a note.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding, most_severe_first
from opskit.analysis.jvm_monitors import find_waits
from opskit.analysis.jvms import (
    GC_PERCENT,
    find_kills,
    find_near_limit,
    find_stuck,
    find_throttling,
    find_young,
    row_of,
    shares,
)
from opskit.quantities import duration, percent, plural, size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.finding import Severity
    from opskit.analysis.jvms import Row
    from opskit.collect.jvm_troubles import Stall
    from opskit.collect.jvm_window import Facts, Pair
    from opskit.collect.jvms import Seen

_FEW = 3  # pauses or periods; fewer are a moment
# In percent of a window; of one in the JVM's first seconds, in which its heap grows.
_PLAIN_PERCENT, _AT_START_PERCENT = 30.0, 40.0
_WARM_S = 10.0
_PAUSED_PERCENT = 50.0  # of the window
_FULL = 0.9  # of the old generation, after a full collection
# After the first `; ` of these summaries comes advice.
_WITH_ADVICE = frozenset({"memory-near-limit", "memory-heap-outgrows-limit", "oom-killed"})


class Share(NamedTuple):
    """A share of the time in percent: in the window, and since the start. `events` of it ended in the window."""

    now: float
    since_start: float | None
    events: int
    age_s: float | None

    @property
    def severity(self) -> Severity:
        """A warning where it is no moment."""
        lasts = self.since_start is not None and self.since_start >= GC_PERCENT
        if self.age_s is not None and self.age_s < _WARM_S:
            return "warning" if self.now >= _AT_START_PERCENT and self.events >= _FEW else "note"
        return "warning" if lasts or (self.now >= _PLAIN_PERCENT and self.events >= _FEW) else "note"


def judge(facts: Facts) -> list[Finding]:
    """The findings about all of them, the most severe first; each summary names its process."""
    found = [*find_kills(facts.killed)]
    for pair in facts.pairs:
        found += (_alone(finding, pair.now) for finding in _of_pair(facts, pair))
    return most_severe_first(found)


def _of_pair(facts: Facts, pair: Pair) -> Iterator[Finding]:
    now = pair.now
    if pair.before is not None:
        now = now._replace(reading=now.reading._replace(between=pair.between))
        if pair.before.stopped is None:  # it was stopped just now, as a debugger or a signal does for a moment
            now = now._replace(stopped=None)
    row = row_of(now, pair.before and pair.before.reading)
    yield from find_stuck(row, None)
    if now.stopped is None and now.jvm.pid in facts.stalls:
        yield _stalled(row, facts.stalls[now.jvm.pid])
    if now.jvm.pid in facts.waits:
        yield from (_unless_paused(each, row) for each in find_waits(facts.waits[now.jvm.pid], process_of(now)))
    yield from find_near_limit(row)
    if pair.before is not None and now.stopped is None:
        yield from _full(row)
        yield from _gc(row)
        yield from find_throttling(row)
        yield from find_young(row)


def _unless_paused(finding: Finding, row: Row) -> Finding:
    """A thread that holds a lock for a second does nothing wrong where the whole JVM was paused meanwhile: a note."""
    is_paused = row.before is not None and (row.shares.stopped_percent or 0.0) >= _PAUSED_PERCENT
    return finding._replace(severity="note") if is_paused and finding.code == "lock-contended" else finding


def named(seen: Seen) -> str:
    """`4242 (app.jar)`."""
    return f"{seen.jvm.pid} ({seen.jvm.main})"


def process_of(seen: Seen) -> Entity:
    """The process, in its container's, pod's or unit's cgroup."""
    inside = Entity("cgroup", seen.place.path) if seen.place else None
    return Entity("process", seen.jvm.pid, seen.jvm.start_ticks, inside)


def _alone(finding: Finding, seen: Seen) -> Finding:
    """The finding with a summary that names the process, its advice as the fix."""
    summary = finding.summary
    for begin in (f"{named(seen)} ", f"{seen.jvm.main}: ", f"{seen.jvm.main} "):
        if summary.startswith(begin):
            rest = summary[len(begin) :]
            summary = f"{named(seen)}{':' if begin.endswith(': ') else ''} {rest}"
            break
    advice: str | None = None
    if finding.code in _WITH_ADVICE:
        summary, _, advice = summary.partition("; ")
    entity = process_of(seen) if finding.entity.kind == "process" else finding.entity
    return finding._replace(summary=summary, entity=entity, fix=finding.fix or advice or None)


def _gc(row: Row) -> Iterator[Finding]:
    now, reading = row.shares.gc_percent, row.seen.reading
    if now is None or now < GC_PERCENT:
        return
    found = Share(now, shares(reading).gc_percent, row.since(lambda each: each.gc.pauses), reading.age_s)
    long = "" if found.since_start is None else f", {percent(found.since_start / 100)} since its start"
    heap = reading.heap
    full = f"; heap: {size(heap.used_bytes)} of {size(heap.max_bytes)}" if heap and heap.used_bytes else ""
    yield Finding(
        "jvm-gc-share", found.severity, process_of(row.seen),
        f"{named(row.seen)} spends {percent(now / 100)} of the time in GC pauses{full}",
        f"{plural(found.events, 'pause')} in {_window(row)}{long}, by sun.gc.collector.*.time of its hsperfdata",
        next=shell.command("opskit", "jmap-diff", row.seen.jvm.pid, "-c", 5),
        share=round(now / 100, 4), window_s=row.shares.window_s and round(row.shares.window_s, 3),
    )  # fmt: skip


def _window(row: Row) -> str:
    return f"{row.shares.window_s or 0:.1f} s"


def _full(row: Row) -> Iterator[Finding]:
    """A full collection of the window has left the old generation nearly full: that much is live."""
    now, before = row.seen.reading.generations, row.before and row.before.generations
    if now is None or not before or now.collector != before.collector or now.full <= before.full:
        return
    if now.old_used_bytes < _FULL * now.old_max_bytes or not now.old_max_bytes:
        return
    yield Finding(
        "heap-nearly-full", "warning", process_of(row.seen),
        f"the heap of {named(row.seen)} is nearly full: a full collection left {size(now.old_used_bytes)} of the old generation's "
        f"{size(now.old_max_bytes)}",
        f"{plural(now.full - before.full, 'full collection')} in {_window(row)}, by sun.gc.generation.1.space.0.used of its hsperfdata",
        next=shell.command("opskit", "jmap-diff", row.seen.jvm.pid, "-c", 5),
        share=round(min(1.0, now.old_used_bytes / now.old_max_bytes), 4),
    )  # fmt: skip


def _stalled(row: Row, stall: Stall) -> Finding:
    late, top = "", shell.command("top", "-H", "-p", row.seen.jvm.pid)
    if stall.thread is not None:
        tid, name, used = stall.thread
        late = f"; thread {name!r} ({tid}) used {percent(used)} of a CPU"
        top = shell.command("perf", "record", "-g", "-t", tid)
    return Finding(
        "safepoint-not-reached", "error", process_of(row.seen),
        f"{named(row.seen)} is stuck: its threads have not stopped for a safepoint for {duration(stall.seconds)}{late}",
        "the VM thread polls, and no counter of its hsperfdata has moved", next=top, window_s=round(stall.seconds, 3),
    )  # fmt: skip
