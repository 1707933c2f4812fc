"""Judge a live JVM's safepoints between readings of its counters, and what delayed the JVM in that time."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, TypeVar

from opskit.analysis.cpu_quota import judge_quota, most_throttled
from opskit.analysis.finding import HOST, Entity, Finding, Severity, most_severe_first
from opskit.analysis.safepoints.advice import TOO_MUCH_TTSP, Jdk, advise, verdict
from opskit.analysis.safepoints.stops import Totals
from opskit.analysis.thresholds import MEMORY_STALL_SHARE
from opskit.proc.cgroup.limits import limits_since
from opskit.quantities import duration, percent
from opskit.records import NamedTuple
from opskit.shell import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.collect.safepoints.live import Facts, Reading
    from opskit.proc.cgroup.limits import CpuLimit

_FAULTS_PER_S = 50.0
_CROWDED_SHARE = 0.5  # of the time with a task waiting for a CPU; without pressure figures, twice as many tasks as CPUs
_STALLED = ("cpu_stalled_s", "memory_stalled_s", "io_stalled_s")
N = TypeVar("N", int, float)


class Interval(NamedTuple):
    """What happened between two readings. `at_s`: its end, since the first reading. Pressure: the part of the time (0 to 1)."""

    at_s: float
    elapsed_s: float
    totals: Totals
    throttled_s: float | None
    throttled_periods: int | None
    cpu_pressure_share: float | None
    memory_pressure_share: float | None
    io_pressure_share: float | None
    runnable: float | None
    major_faults: int | None
    waiting: bool
    late_thread: str | None
    quota: CpuLimit | None = None  # the one that was used up most often, with the periods of the interval


class Result(NamedTuple):
    """The intervals, and all of them as one."""

    facts: Facts
    whole: Interval
    intervals: Sequence[Interval]
    verdict: str
    findings: Sequence[Finding]


def judge(facts: Facts) -> Result:
    """The findings: measured delays come before what the safepoints suggest."""
    readings = facts.readings
    begun_s = readings[0].at_s
    intervals = [between(earlier, later, begun_s) for earlier, later in zip(readings, readings[1:])]
    known = [interval.runnable for interval in intervals if interval.runnable is not None]
    whole = between(readings[0], readings[-1], begun_s)._replace(runnable=sum(known) / len(known) if known else None)
    # No TTSP is longer than all those of its interval.
    ttsps_s = [interval.totals.ttsp_s for interval in intervals if interval.totals.ttsp_s is not None]
    whole = whole._replace(totals=whole.totals._replace(ttsp_max_s=max(ttsps_s, default=None)))
    entity = Entity("process", facts.pid, facts.start_ticks)
    waited_s = _waiting_s(intervals)
    not_reached = (
        "Time to safepoint (TTSP) dominates: a safepoint was requested and has not been reached for at least "
        f"{duration(waited_s)}; all other Java threads are stopped."
    )
    said = not_reached if whole.waiting else verdict(whole.totals, ())
    delays = _delays(entity, whole, waited_s, facts)
    # A large part of tiny stops is normal in a healthy JVM.
    advice = (one for one in advise(entity, whole.totals, Jdk(facts.jdk, facts.jdk)) if one.severity != "note")
    found = most_severe_first([*delays, *advice])
    return Result(facts, whole, intervals, said, found)


def between(earlier: Reading, later: Reading, begun_s: float) -> Interval:
    """The difference of two readings. A counter that ran backwards gives None."""
    elapsed_s = later.at_s - earlier.at_s
    safepoints = max(later.safepoints - earlier.safepoints, 0)
    stopped_s = max(later.stopped_s - earlier.stopped_s, 0.0)
    stalled = (_gain(getattr(earlier, name), getattr(later, name)) for name in _STALLED)
    # The kernel adds to the totals about every two seconds: a window may get more than it lasted.
    cpu, memory, io = (None if time_s is None else min(1.0, time_s / elapsed_s) for time_s in stalled)
    return Interval(
        later.at_s - begun_s, elapsed_s,
        Totals(safepoints, stopped_s, _gain(earlier.ttsp_s, later.ttsp_s), elapsed_s, safepoints),
        _gain(earlier.throttled_s, later.throttled_s), _gain(earlier.throttled_periods, later.throttled_periods), cpu,
        memory, io, later.runnable, _gain(earlier.major_faults, later.major_faults), later.waiting, later.late_thread,
        most_throttled(limits_since(earlier.quotas, later.quotas)),
    )  # fmt: skip


def _gain(earlier: N | None, later: N | None) -> N | None:
    return None if earlier is None or later is None or later < earlier else later - earlier


def _waiting_s(intervals: Sequence[Interval]) -> float:
    """How long, at the least, the last safepoint has been waited for; 0 where none is."""
    return sum(each.elapsed_s for each in takewhile(lambda each: each.waiting, reversed(intervals)))


def _delays(entity: Entity, whole: Interval, waited_s: float, facts: Facts) -> Iterator[Finding]:
    """What was measured: a safepoint that is not reached, and what holds threads back."""
    elapsed_s, faults, memory_share = whole.elapsed_s, whole.major_faults, whole.memory_pressure_share
    severity: Severity = "warning" if (whole.totals.ttsp_share or 0.0) > TOO_MUCH_TTSP or whole.waiting else "note"
    busy = command("opskit", "jpmp", entity.name, "--on-cpu")
    waits = command("opskit", "cswitch", entity.name)
    if whole.waiting:
        busy = command("top", "-H", "-p", entity.name)  # such a JVM gives no thread dump
        who = "a thread does not stop" if whole.late_thread is None else f"thread {whole.late_thread!r} does not stop"
        yield Finding(
            "safepoint-not-reached", "error", entity, f"a safepoint was requested, and {who}",
            f"for {duration(waited_s)} the VM thread has polled, and no counter has moved",
            "wait for the loop to end, or restart the JVM; a counted loop without polls is the usual cause",
            next=busy, window_s=waited_s,
        )  # fmt: skip
    if whole.quota is not None:
        throttled = judge_quota(whole.quota, f"{facts.pid} ({facts.name})", next_=waits, window_s=elapsed_s)
        yield from () if throttled is None else (throttled,)
    if memory_share is not None and memory_share >= MEMORY_STALL_SHARE:
        who, own = "tasks of its cgroup", ""
        if facts.pressure_of != "cgroup":
            who, own = "tasks somewhere on the machine", f"; this JVM had {faults or 0:,} major faults meanwhile"
        # Without a major fault it may be others' pressure alone.
        spared = facts.pressure_of != "cgroup" and faults == 0
        yield Finding(
            "memory-pressure", "note" if spared else "warning", Entity("cgroup", facts.cgroup) if facts.cgroup else HOST,
            f"{who} waited for memory {percent(memory_share)} of the time: pages are reclaimed, refaulted or swapped in",
            f"memory pressure, some: {duration(memory_share * elapsed_s)} of {duration(elapsed_s)}{own}",
            "more memory for the cgroup, a smaller heap, no swap for JVMs", command("vmstat", 1), memory_share, elapsed_s,
        )  # fmt: skip
    if faults is not None and faults / elapsed_s >= _FAULTS_PER_S:
        yield Finding(
            "major-faults", severity, entity,
            f"{faults / elapsed_s:,.0f} page faults a second wait for a disk: a thread in one cannot stop",
            f"{faults:,} major faults of the JVM in {duration(elapsed_s)}",
            "no swap for JVMs, more memory, or smaller mapped files", command("vmstat", 1), window_s=elapsed_s,
        )  # fmt: skip
    others = None if whole.runnable is None else whole.runnable - 1  # the reader itself
    waited = whole.cpu_pressure_share
    crowd = 2 if waited is None else 1 if waited >= _CROWDED_SHARE else None
    if facts.cpus is not None and others is not None and crowd is not None and others > crowd * facts.cpus:
        psi = "" if waited is None else f"; some task waited for a CPU {percent(waited)} of the time"
        yield Finding(
            "runnable-above-cpus", severity, HOST,
            f"more threads want to run than there are CPUs: {others:.1f} on average for {facts.cpus}",
            f"/proc/loadavg at each sample{psi}",
            "move other load away, start fewer threads, or add CPUs: a thread that does not run cannot stop either",
            waits, window_s=elapsed_s,
        )  # fmt: skip
