"""The verdict on a JVM's safepoints as a sentence, and its findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.finding import Entity, Finding, Severity, most_severe_first
from opskit.analysis.thresholds import GC_SHARE
from opskit.quantities import duration, percent, plural, twelve_digits
from opskit.records import NamedTuple
from opskit.shell import Syntax, command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opskit.analysis.safepoints.stops import Stop, Totals
    from opskit.analysis.safepoints.sums import Operation

TOO_MUCH_TTSP = 1 / 3
_OFTEN = 0.1  # of the safepoints, or of the stopped time
_DUMPS_A_MINUTE = 1.0
_FEWEST = 5
_LITTLE_SHARE, _LITTLE_S = 0.01, 0.1
_STRIP_MINING_FROM = 10  # from 10 on G1, ZGC and Shenandoah poll in counted loops by default
_BIASED_OFF_FROM, _BIASED_GONE_FROM = 15, 18
_PID = Syntax("PID")  # a log does not name it

_DUMPS = {"ThreadDump", "PrintThreads", "PrintJNI", "FindDeadlocks", "GetAllStackTraces", "GetThreadListStackTraces"}
_COLLECTIONS = ("G1", "CMS", "ParallelGC", "Shenandoah", "ZMark", "ZRelocate", "XMark", "CGC_Operation")


class Jdk(NamedTuple):
    """The feature releases (8, 17, …) that the JVM can be: `low` to `high`; None: unknown, or open upwards."""

    low: int | None = None
    high: int | None = None

    @property
    def name(self) -> str | None:
        """`17`, `9-12`, `13+`; None where nothing is known."""
        if self.low is None or self.low == self.high:
            return None if self.low is None else str(self.low)
        return f"{self.low}+" if self.high is None else f"{self.low}-{self.high}"

    def may_be_before(self, release: int) -> bool:
        """Whether it can be an earlier one."""
        return self.low is None or self.low < release

    def may_be_from(self, release: int) -> bool:
        """Whether it can be this one or a later one."""
        return self.high is None or self.high >= release


def verdict(totals: Totals, operations: Sequence[Operation], timeouts: int = 0) -> str:
    """How much, and what dominates: the operations or TTSP. `timeouts`: how often a SafepointTimeout ran out."""
    late = f"{plural(timeouts, 'safepoint')} timed out waiting for a thread." if timeouts else ""
    if not totals.safepoints:
        return f"No safepoint was reached. {late}" if late else "No safepoint: the application was never stopped."
    of_time = "" if totals.stopped_share is None else f", {percent(totals.stopped_share)} of the time"
    single = totals.safepoints == 1 or totals.stopped_max_s is None
    longest = "" if single else f", at most {duration(totals.stopped_max_s)}"
    begin = (
        f"{plural(totals.safepoints, 'safepoint')} stopped the application for {duration(totals.stopped_s)}{of_time}"
        f" ({duration(totals.stopped_avg_s)} on average{longest})."
    )
    if not late and totals.stopped_max_s is not None and _is_little(totals, totals.stopped_max_s, _LITTLE_S):
        late = "That is little: the cause of a slow JVM is elsewhere."
    return f"{begin} {_what_dominates(totals, operations)} {late}".rstrip()


def _is_little(totals: Totals, longest_s: float | None, least_s: float) -> bool:
    """Whether stops take little of the time, and each of them less than `least_s`."""
    share = totals.stopped_share
    return share is not None and share < _LITTLE_SHARE and longest_s is not None and longest_s < least_s


def _has_little_ttsp(totals: Totals) -> bool:
    """Whether TTSP is harmless, although it may be a large part of the stops: it always is where all stops are tiny."""
    return _is_little(totals, totals.ttsp_max_s, _LITTLE_S / 2)


def _what_dominates(totals: Totals, operations: Sequence[Operation]) -> str:
    most = operations[0] if operations else None  # the largest, which may have no name
    named = ""
    if most is not None and most.name and totals.stopped_s:
        named = f"; the most in {most.name}, {percent(most.stopped_s / totals.stopped_s)} of the stopped time"
    share = totals.ttsp_share
    if share is None:
        return f"The time to safepoint (TTSP) is unknown{named}."
    if share > 0.5:
        return f"Time to safepoint (TTSP) dominates: {percent(share)} of it, not the operations{named}."
    much = ": too much" if share > TOO_MUCH_TTSP and not _has_little_ttsp(totals) else ""
    return f"The operations dominate: {percent(1 - share)} of it; time to safepoint (TTSP) takes {percent(share)}{much}{named}."


def advise(
    entity: Entity,
    totals: Totals,
    jdk: Jdk,
    operations: Sequence[Operation] = (),
    worst: Sequence[Stop] = (),
    late_threads: Mapping[str, int] | None = None,
) -> list[Finding]:
    """The findings, the most severe first. `entity`: the log or the process."""
    found = [
        _late(entity, late_threads or {}),
        _ttsp(entity, totals, jdk, worst),
        _revocations(entity, totals, jdk, operations),
        _dumps(entity, totals, operations),
        _collections(entity, totals, operations),
    ]
    return most_severe_first(finding for finding in found if finding is not None)


def _late(entity: Entity, late_threads: Mapping[str, int]) -> Finding | None:
    if not late_threads:
        return None
    names = sorted(late_threads, key=lambda name: (-late_threads[name], name))
    shown = ", ".join(f'"{name}" ({late_threads[name]})' for name in names[:5])
    more = f" and {plural(len(names) - 5, 'more thread')}" if len(names) > 5 else ""
    return Finding(
        "late-to-safepoint", "warning", entity,
        f"safepoints timed out waiting for {shown}{more}",
        "SafepointTimeout blocks in the log", next=command("top", "-H", "-p", _PID),
    )  # fmt: skip


def _ttsp(entity: Entity, totals: Totals, jdk: Jdk, worst: Sequence[Stop]) -> Finding | None:
    share = totals.ttsp_share
    if share is None or share <= TOO_MUCH_TTSP:
        return None
    known = [stop for stop in worst if stop.ttsp_s is not None]
    slowest = max(known, key=lambda stop: stop.ttsp_s or 0.0, default=None)
    where = ""
    if slowest is not None:
        operation = f" for {slowest.operation}" if slowest.operation else ""
        at = f" at {slowest.stamp.text}" if slowest.stamp.text else ""
        ttsp = f"{duration(slowest.ttsp_s)} of {duration(slowest.stopped_s)}"
        where = f"; of the longest stops, {ttsp}{operation}{at}"
    return Finding(
        "ttsp-dominates", "note" if _has_little_ttsp(totals) else "warning", entity,
        f"{percent(share)} of the stopped time is spent waiting for threads to reach the safepoint",
        f"TTSP {duration(totals.ttsp_s)} of {duration(totals.stopped_s)} stopped{where}",
        f"against counted loops: {_counted_loops(jdk)}; to log the late thread: -XX:+SafepointTimeout "
        "-XX:SafepointTimeoutDelay=500; page faults, swap, CPU throttling and run queues delay threads too",
        share=twelve_digits(share), window_s=twelve_digits(totals.elapsed_s),
    )  # fmt: skip


def _counted_loops(jdk: Jdk) -> str:
    advice = []
    if jdk.may_be_before(_STRIP_MINING_FROM):
        before = jdk.high is not None and jdk.high < _STRIP_MINING_FROM
        advice.append(f"{'' if before else 'on JDK 8 and 9 '}-XX:+UseCountedLoopSafepoints")
    if jdk.may_be_from(_STRIP_MINING_FROM):
        advice.append(
            "with the Serial and Parallel collectors -XX:+UseCountedLoopSafepoints -XX:LoopStripMiningIter=1000, the "
            "default of G1, ZGC and Shenandoah from JDK 10 on (there a smaller -XX:LoopStripMiningIter)"
        )
    return ", ".join(advice)


class _Group(NamedTuple):
    """Operations of one kind together. `of_time`: their part of the stopped time."""

    rows: Sequence[Operation]
    safepoints: int
    stopped_s: float
    of_time: float
    severity: Severity

    @property
    def counts(self) -> str:
        return ", ".join(f"{row.name} {row.safepoints:,}" for row in self.rows)


def _group(totals: Totals, operations: Sequence[Operation], belongs: Callable[[str], bool]) -> _Group:
    rows = [row for row in operations if row.name and belongs(row.name)]
    stopped_s = sum(row.stopped_s for row in rows)
    of_time = stopped_s / totals.stopped_s if totals.stopped_s else 0.0
    little = _is_little(totals, max((row.stopped_max_s for row in rows), default=None), _LITTLE_S)
    severity: Severity = "warning" if of_time >= _OFTEN and not little else "note"
    return _Group(rows, sum(row.safepoints for row in rows), stopped_s, of_time, severity)


def _revocations(entity: Entity, totals: Totals, jdk: Jdk, operations: Sequence[Operation]) -> Finding | None:
    group = _group(totals, operations, lambda name: "RevokeBias" in name)
    if group.safepoints < _FEWEST or max(group.of_time, group.safepoints / totals.safepoints) < _OFTEN:
        return None
    if not jdk.may_be_before(_BIASED_GONE_FROM):
        return None
    fix = "-XX:-UseBiasedLocking"
    if not jdk.may_be_before(_BIASED_OFF_FROM):
        fix = "remove -XX:+UseBiasedLocking: it is off by default from JDK 15 on"
    elif jdk.may_be_from(_BIASED_OFF_FROM):
        fix += " before JDK 15; from there on remove -XX:+UseBiasedLocking"
    return Finding(
        "bias-revocations", group.severity, entity,
        f"{group.safepoints:,} of {plural(totals.safepoints, 'safepoint')} revoke biased locks, "
        f"{percent(group.of_time)} of the stopped time",
        group.counts, fix, share=twelve_digits(group.of_time), window_s=twelve_digits(totals.elapsed_s),
    )  # fmt: skip


def _dumps(entity: Entity, totals: Totals, operations: Sequence[Operation]) -> Finding | None:
    group = _group(totals, operations, lambda name: name in _DUMPS)
    per_minute = group.safepoints / totals.elapsed_s * 60 if totals.elapsed_s else None
    is_often = per_minute is not None and per_minute >= _DUMPS_A_MINUTE
    if group.safepoints < _FEWEST or not (is_often or group.safepoints / totals.safepoints >= _OFTEN):
        return None
    often = "" if per_minute is None else f", {per_minute:,.1f} a minute"
    return Finding(
        "thread-dumps-sampled", group.severity, entity,
        f"{group.safepoints:,} safepoints dump threads or look for deadlocks{often}: a monitoring agent samples this JVM",
        f"{group.counts}; {percent(group.of_time)} of the stopped time",
        "let the agent sample less often, or without safepoints (JFR, AsyncGetCallTrace)",
        share=twelve_digits(group.of_time), window_s=twelve_digits(totals.elapsed_s),
    )  # fmt: skip


def _collections(entity: Entity, totals: Totals, operations: Sequence[Operation]) -> Finding | None:
    group = _group(totals, operations, lambda name: "Collect" in name or name.startswith(_COLLECTIONS))
    if not totals.elapsed_s or group.of_time < 0.5 or group.stopped_s / totals.elapsed_s < GC_SHARE:
        return None
    share = group.stopped_s / totals.elapsed_s
    return Finding(
        "jvm-gc-share", "warning", entity,
        f"garbage collections stop the application for {percent(share)} of the time",
        ", ".join(f"{row.name} {row.safepoints:,} x {duration(row.stopped_avg_s)}" for row in group.rows[:4]),
        "a larger heap, or repair of a leak; -Xlog:gc* (before JDK 9 -XX:+PrintGCDetails) logs the cause of each collection",
        command("opskit", "jmap-diff", _PID, "-c", 5), twelve_digits(share), twelve_digits(totals.elapsed_s),
    )  # fmt: skip
