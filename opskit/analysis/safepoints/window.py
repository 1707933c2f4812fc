"""Judge the safepoints of JVMs in a window of a second: time to safepoint, and pauses that are no collections. Pure.

A stop is counted when it ends, and a second of a healthy JVM may have a long one. What is plain in the window alone, or is also so since
the JVM's start, is a warning; the rest is a note.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.finding import Entity, Finding, most_severe_first
from opskit.analysis.safepoints.advice import TOO_MUCH_TTSP
from opskit.quantities import duration, percent, plural
from opskit.records import NamedTuple
from opskit.shell import command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.finding import Severity
    from opskit.collect.safepoints.window import Facts, Watched

_FEWEST = 3  # safepoints; fewer are a moment
_LATE_SHARE = 0.1  # of the time, waiting for threads to stop: less harms nobody
_PAUSED_SHARE, _PLAINLY_PAUSED = 0.1, 0.3  # of the time, in pauses that are no collections
_WARM_S = 10.0


class Shares(NamedTuple):
    """Of a time: stopped; of it waiting for threads to stop; of it in stops that are no collections. None: unknown."""

    seconds: float
    safepoints: int
    stopped: float
    late: float | None
    other: float | None

    @property
    def late_of_stopped(self) -> float:
        """The share of TTSP in the stopped time."""
        return (self.late or 0.0) / self.stopped if self.stopped else 0.0


def judge(facts: Facts) -> list[Finding]:
    """The findings about all of them; each summary names its process."""
    return most_severe_first(finding for each in facts.watched for finding in _of_jvm(each))


def shares(
    seconds: float, safepoints: int, stopped_s: float, ttsp_s: float | None, gc_s: float | None
) -> Shares | None:
    """The shares of so many seconds; None where a counter ran backwards. A stop that began before the window is at most all of it."""
    if seconds <= 0 or safepoints < 0 or stopped_s < 0 or (ttsp_s or 0.0) < 0 or (gc_s or 0.0) < 0:
        return None
    stopped = min(1.0, stopped_s / seconds)
    late = None if ttsp_s is None else min(stopped, ttsp_s / seconds)
    other = None if gc_s is None else max(0.0, stopped - gc_s / seconds)
    return Shares(seconds, safepoints, stopped, late, other)


def _of_jvm(jvm: Watched) -> Iterator[Finding]:
    before, now = jvm.before, jvm.now
    gains = (None if one is None or other is None else other - one for one, other in zip(before[3:], now[3:]))
    window = shares(
        now.at_s - before.at_s, now.safepoints - before.safepoints, now.stopped_s - before.stopped_s, *gains
    )
    life = None if jvm.age_s is None else shares(jvm.age_s, *now[1:])
    if window is None:
        return
    if window.late_of_stopped > TOO_MUCH_TTSP and (window.late or 0.0) >= _LATE_SHARE:
        lasts = life is not None and life.late_of_stopped > TOO_MUCH_TTSP and (life.late or 0.0) >= _LATE_SHARE
        yield _late(jvm, window, _severity(jvm, window, lasts=lasts, is_plain=True))
    elif window.other is not None and window.other >= _PAUSED_SHARE:
        lasts = life is not None and life.other is not None and life.other >= _PAUSED_SHARE
        yield _paused(jvm, window, _severity(jvm, window, lasts=lasts, is_plain=window.other >= _PLAINLY_PAUSED))


def _severity(jvm: Watched, window: Shares, *, lasts: bool, is_plain: bool) -> Severity:
    is_young = jvm.age_s is not None and jvm.age_s < _WARM_S
    return "warning" if (lasts and not is_young) or (is_plain and window.safepoints >= _FEWEST) else "note"


def _process(jvm: Watched) -> Entity:
    inside = None if jvm.place is None else Entity("cgroup", jvm.place)
    return Entity("process", jvm.jvm.pid, jvm.jvm.start_ticks, inside)


def _evidence(window: Shares) -> str:
    late = "" if window.late is None else f", {duration(window.late * window.seconds)} of it to stop all threads"
    return (
        f"sun.rt.safepoint* of its hsperfdata: {plural(window.safepoints, 'safepoint')}, {duration(window.stopped * window.seconds)} stopped{late}, "
        f"in {duration(window.seconds)}"
    )


def _late(jvm: Watched, window: Shares, severity: Severity) -> Finding:
    return Finding(
        "ttsp-dominates", severity, _process(jvm),
        f"{jvm.jvm.pid} ({jvm.jvm.main}): {percent(window.late_of_stopped)} of its pause time is time to safepoint; it is paused "
        f"{percent(window.stopped)} of the time",
        _evidence(window), next=command("opskit", "safepoints", jvm.jvm.pid),
        share=round(window.stopped, 4), window_s=round(window.seconds, 3),
    )  # fmt: skip


def _paused(jvm: Watched, window: Shares, severity: Severity) -> Finding:
    return Finding(
        "jvm-paused", severity, _process(jvm),
        f"{jvm.jvm.pid} ({jvm.jvm.main}): pauses take {percent(window.stopped)} of the time, {percent(window.other or 0.0)} without a "
        "garbage collection",
        _evidence(window), next=command("opskit", "safepoints", jvm.jvm.pid),
        share=round(window.stopped, 4), window_s=round(window.seconds, 3),
    )  # fmt: skip
