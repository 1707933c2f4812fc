"""What a JVM's safepoints say, in a sentence, and what to do about each thing that stands out. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opskit.analysis.finding import Finding, most_severe_first

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.analysis.safepoints import Operation, Stop

TOO_MUCH_TTSP = 1 / 3
_OFTEN = 0.1  # of the safepoints, or of the stopped time
_DUMPS_A_MINUTE = 1.0
_FEWEST = 5
_LITTLE_SHARE, _LITTLE_S = 0.01, 0.1
_WITHOUT_COLLECTOR_DEFAULT = 10  # from 10 on G1, ZGC and Shenandoah poll in counted loops by themselves
_BIASED_OFF_FROM, _BIASED_GONE_FROM = 15, 18

_DUMPS = frozenset(
    {"ThreadDump", "PrintThreads", "PrintJNI", "FindDeadlocks", "GetAllStackTraces", "GetThreadListStackTraces"}
)
_COLLECTIONS = (
    "Collect",
    "G1",
    "CMS",
    "ParallelGC",
    "Shenandoah",
    "ZMark",
    "ZRelocate",
    "XMark",
    "CGC_Operation",
    "GC",
)


@dataclass(frozen=True)
class Jdk:
    """The feature releases (8, 17, …) that the JVM can be: `low` to `high`; None: not known, or open upwards."""

    low: int | None = None
    high: int | None = None

    @property
    def name(self) -> str | None:
        """`17`, `9-12`, `13+`; None where nothing is known."""
        if self.low is None:
            return None
        if self.low == self.high:
            return str(self.low)
        return f"{self.low}+" if self.high is None else f"{self.low}-{self.high}"

    def may_be_before(self, release: int) -> bool:
        """Whether it can be an earlier one."""
        return self.low is None or self.low < release

    def may_be_from(self, release: int) -> bool:
        """Whether it can be this one or a later one."""
        return self.high is None or self.high >= release


@dataclass(frozen=True)
class Figures:
    """What the verdict is about: a log's safepoints, or a live JVM's over the time it was watched."""

    safepoints: int
    stopped_s: float
    elapsed_s: float | None
    stopped_max_s: float | None
    ttsp_s: float | None
    ttsp_share: float | None
    ttsp_max_s: float | None = None


def duration(seconds: float | None) -> str:
    """A time as people read it: 3.2 s, 41 ms, 85 us."""
    if seconds is None:
        return "unknown"
    if seconds >= 100:
        return f"{seconds:,.0f} s"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    for unit, factor in (("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.{0 if seconds * factor >= 10 else 1}f} {unit}"
    return "0 s" if seconds == 0 else f"{seconds * 1e9:.0f} ns"


def percent(share: float | None) -> str:
    """A share as people read it: 12 %, 0.06 %."""
    if share is None:
        return "unknown"
    per_cent = share * 100
    if 99 < per_cent < 100:
        return f"{min(per_cent, 99.9):.1f} %"
    if per_cent >= 10 or per_cent == 0:
        return f"{per_cent:.0f} %"
    return f"{per_cent:.1f} %" if per_cent >= 0.95 else f"{per_cent:.2g} %"


def verdict(figures: Figures, operations: Sequence[Operation], timeouts: int = 0) -> str:
    """How much, and what dominates: the operations or the way there. `timeouts`: how often a thread did not stop in time."""
    late = "" if not timeouts else f"{'Once' if timeouts == 1 else f'{timeouts} times'} a thread did not stop in time."
    if not figures.safepoints:
        if late:
            return f"No safepoint was reached. {late}"
        return "No safepoint in this time: the application was never stopped."
    of_time = "" if not figures.elapsed_s else f", {percent(figures.stopped_s / figures.elapsed_s)} of the time"
    one = figures.safepoints == 1
    longest = "" if figures.stopped_max_s is None or one else f", at most {duration(figures.stopped_max_s)}"
    begin = (
        f"{figures.safepoints:,} safepoint{'' if one else 's'} stopped the application for "
        f"{duration(figures.stopped_s)}{of_time}"
        f" ({duration(figures.stopped_s / figures.safepoints)} on average{longest})."
    )
    return f"{begin} {_what_dominates(figures, operations)} {late or _how_bad(figures)}".rstrip()


def _what_dominates(figures: Figures, operations: Sequence[Operation]) -> str:
    most = operations[0] if operations else None  # the largest; where that is not named, nothing is known of the most
    named = ""
    if most is not None and most.name and figures.stopped_s:
        named = f"; the most in {most.name}, {percent(most.stopped_s / figures.stopped_s)} of the stopped time"
    share = figures.ttsp_share
    if share is None:
        return f"How much of it was the way to the safepoint (TTSP) is not told{named}."
    if share > 0.5:
        return f"The way to the safepoint (TTSP) dominates: {percent(share)} of it, not the operations{named}."
    if share > TOO_MUCH_TTSP:
        return (
            f"The operations take {percent(1 - share)} of it, the way to the safepoint (TTSP) {percent(share)}: "
            f"too much{named}."
        )
    return f"The operations dominate: {percent(1 - share)} of it; the way there (TTSP) takes {percent(share)}{named}."


def _how_bad(figures: Figures) -> str:
    little = figures.elapsed_s and figures.stopped_s / figures.elapsed_s < _LITTLE_SHARE
    if little and figures.stopped_max_s is not None and figures.stopped_max_s < _LITTLE_S:
        return "That is little: what slows this JVM is hardly its safepoints."
    return ""


def advise(
    subject: str,
    figures: Figures,
    jdk: Jdk,
    operations: Sequence[Operation] = (),
    worst: Sequence[Stop] = (),
    late_threads: Mapping[str, int] | None = None,
) -> list[Finding]:
    """What stands out, the most severe first. `subject`: the logs' names or the pid."""
    found = [
        *_late(subject, late_threads or {}),
        *_ttsp(subject, figures, jdk, worst),
        *_revocations(subject, figures, jdk, operations),
        *_dumps(subject, figures, operations),
        *_collections(subject, figures, operations),
    ]
    return most_severe_first(found)


def _ttsp(subject: str, figures: Figures, jdk: Jdk, worst: Sequence[Stop]) -> list[Finding]:
    share = figures.ttsp_share
    if share is None or share <= TOO_MUCH_TTSP:
        return []
    slowest = max(
        (stop for stop in worst if stop.ttsp_s is not None), key=lambda stop: stop.ttsp_s or 0.0, default=None
    )
    where = (
        ""
        if slowest is None
        else f"; of the worst stops, {duration(slowest.ttsp_s)} of {duration(slowest.stopped_s)}"
        + (f" for {slowest.operation}" if slowest.operation else "")
        + (f" at {slowest.stamp.text}" if slowest.stamp.text else "")
    )
    # Where all stops are tiny, the way there is always a good part of them, and nobody suffers.
    harmless = figures.elapsed_s is not None and figures.stopped_s / figures.elapsed_s < _LITTLE_SHARE
    small = harmless and (figures.ttsp_max_s or _LITTLE_S) < _LITTLE_S / 2
    return [
        Finding(
            "ttsp-dominates",
            "note" if small else "warning",
            subject,
            f"{percent(share)} of the stopped time is spent waiting for threads to reach the safepoint",
            f"TTSP {duration(figures.ttsp_s)} of {duration(figures.stopped_s)} stopped{where}",
            f"counted loops: {_counted_loops(jdk)}; page faults and swapping: vmstat 1, or memory mapped files on a slow "
            "disk; more runnable threads than CPUs: compare the load with the CPUs; CPU throttling: nr_throttled in the "
            "cgroup's cpu.stat; -XX:+SafepointTimeout -XX:SafepointTimeoutDelay=MS names the late thread",
        )
    ]


def _counted_loops(jdk: Jdk) -> str:
    advice = []
    if jdk.may_be_before(_WITHOUT_COLLECTOR_DEFAULT):
        advice.append(
            f"{'' if jdk.high is not None and jdk.high < 10 else 'on JDK 8 and 9 '}-XX:+UseCountedLoopSafepoints"
        )
    if jdk.may_be_from(_WITHOUT_COLLECTOR_DEFAULT):
        advice.append(
            "with the Serial and Parallel collectors -XX:+UseCountedLoopSafepoints -XX:LoopStripMiningIter=1000, "
            "which G1, ZGC and Shenandoah set by themselves from JDK 10 on (there a smaller -XX:LoopStripMiningIter)"
        )
    return ", ".join(advice)


def _late(subject: str, late_threads: Mapping[str, int]) -> list[Finding]:
    if not late_threads:
        return []
    names = sorted(late_threads, key=lambda name: (-late_threads[name], name))
    shown = ", ".join(f'"{name}" ({late_threads[name]})' for name in names[:5])
    return [
        Finding(
            "late-to-safepoint",
            "warning",
            subject,
            f"safepoints timed out waiting for {shown}"
            + (f" and {len(names) - 5} more threads" if len(names) > 5 else ""),
            "SafepointTimeout blocks in the log",
            "see what that thread runs while it burns CPU: opskit jpmp PID; a counted loop without polls, a huge array copy "
            "or a page fault keeps a thread from stopping",
        )
    ]


def _revocations(subject: str, figures: Figures, jdk: Jdk, operations: Sequence[Operation]) -> list[Finding]:
    rows = [row for row in operations if row.name and "RevokeBias" in row.name]
    count, stopped_s = sum(row.safepoints for row in rows), sum(row.stopped_s for row in rows)
    of_time = stopped_s / figures.stopped_s if figures.stopped_s else 0.0
    if count < _FEWEST or max(of_time, count / figures.safepoints) < _OFTEN:
        return []
    if not jdk.may_be_before(_BIASED_GONE_FROM):
        return []
    fix = "-XX:-UseBiasedLocking"
    if not jdk.may_be_before(_BIASED_OFF_FROM):
        fix = "remove -XX:+UseBiasedLocking: it is off by itself from JDK 15 on"
    elif jdk.may_be_from(_BIASED_OFF_FROM):
        fix += " before JDK 15; from there on remove -XX:+UseBiasedLocking"
    return [
        Finding(
            "bias-revocations",
            "warning" if of_time >= _OFTEN else "note",
            subject,
            f"{count:,} of {figures.safepoints:,} safepoints revoke biased locks, {percent(of_time)} of the stopped time",
            ", ".join(f"{row.name} {row.safepoints:,}" for row in rows),
            fix,
        )
    ]


def _dumps(subject: str, figures: Figures, operations: Sequence[Operation]) -> list[Finding]:
    rows = [row for row in operations if row.name in _DUMPS]
    count, stopped_s = sum(row.safepoints for row in rows), sum(row.stopped_s for row in rows)
    per_minute = count / figures.elapsed_s * 60 if figures.elapsed_s else None
    if count < _FEWEST or (
        count / figures.safepoints < _OFTEN and (per_minute is None or per_minute < _DUMPS_A_MINUTE)
    ):
        return []
    often = "" if per_minute is None else f", {per_minute:,.1f} a minute"
    of_time = stopped_s / figures.stopped_s if figures.stopped_s else 0.0
    return [
        Finding(
            "thread-dumps-sampled",
            "warning" if of_time >= _OFTEN else "note",
            subject,
            f"{count:,} safepoints dump threads or look for deadlocks{often}: a monitoring agent samples this JVM",
            ", ".join(f"{row.name} {row.safepoints:,}" for row in rows) + f"; {percent(of_time)} of the stopped time",
            "let the agent sample less often, or without safepoints (a profiler that uses AsyncGetCallTrace or JFR)",
        )
    ]


def _collections(subject: str, figures: Figures, operations: Sequence[Operation]) -> list[Finding]:
    rows = [row for row in operations if row.name and ("Collect" in row.name or row.name.startswith(_COLLECTIONS))]
    stopped_s = sum(row.stopped_s for row in rows)
    if not figures.stopped_s or not figures.elapsed_s or stopped_s / figures.stopped_s < 0.5:
        return []
    if stopped_s / figures.elapsed_s < _OFTEN:
        return []
    return [
        Finding(
            "collections-dominate",
            "warning",
            subject,
            f"garbage collections stop the application for {percent(stopped_s / figures.elapsed_s)} of the time",
            ", ".join(f"{row.name} {row.safepoints:,} x {duration(row.stopped_avg_s)}" for row in rows[:4]),
            "a heap that is too small or a leak: opskit jmap-diff PID shows what grows; -Xlog:gc* (before JDK 9 "
            "-XX:+PrintGCDetails) tells why each collection ran",
        )
    ]
