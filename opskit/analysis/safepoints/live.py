"""A live JVM's safepoints between readings of its counters, and what delayed the JVM meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from opskit.analysis.finding import Entity, Finding, Severity, most_severe_first
from opskit.analysis.safepoints.advice import TOO_MUCH_TTSP, Jdk, advise, verdict
from opskit.analysis.safepoints.stops import Totals
from opskit.quantities import duration, percent
from opskit.records import NamedTuple
from opskit.shell import command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.safepoints.counters import Reading
    from opskit.collect.safepoints.live import Facts

_THROTTLED_SHARE = 0.01
_STALLED_SHARE = 0.05
_FAULTS_PER_S = 50.0
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


class Result(NamedTuple):
    """The intervals, and all of them as one."""

    facts: Facts
    whole: Interval
    intervals: Sequence[Interval]
    verdict: str
    findings: Sequence[Finding]


def judge(facts: Facts) -> Result:
    """The findings: measured delays come before what the safepoints alone suggest."""
    readings = facts.readings
    begun_s = readings[0].at_s
    intervals = [between(earlier, later, begun_s) for earlier, later in zip(readings, readings[1:])]
    known = [interval.runnable for interval in intervals if interval.runnable is not None]
    whole = between(readings[0], readings[-1], begun_s)._replace(runnable=sum(known) / len(known) if known else None)
    entity = Entity("process", facts.pid, facts.start_ticks)
    found = [
        _not_reached(entity, intervals),
        _throttled(entity, whole),
        _stalled(entity, whole, facts.pressure_of),
        _faults(entity, whole),
        _crowded(entity, whole, facts.cpus),
        *advise(entity, whole.totals, Jdk(facts.jdk, facts.jdk)),
    ]
    said = _not_reached_line(intervals) if whole.waiting else verdict(whole.totals, ())
    return Result(facts, whole, intervals, said, most_severe_first(one for one in found if one is not None))


def between(earlier: Reading, later: Reading, begun_s: float) -> Interval:
    """The difference of two readings. A counter that ran backwards gives None."""
    elapsed_s = later.at_s - earlier.at_s
    safepoints = max(later.safepoints - earlier.safepoints, 0)
    stopped_s = max(later.stopped_s - earlier.stopped_s, 0.0)
    stalled = (_gain(getattr(earlier, name), getattr(later, name)) for name in _STALLED)
    cpu, memory, io = (None if time_s is None else time_s / elapsed_s for time_s in stalled)
    return Interval(
        later.at_s - begun_s, elapsed_s,
        Totals(safepoints, stopped_s, _gain(earlier.ttsp_s, later.ttsp_s), elapsed_s, safepoints),
        _gain(earlier.throttled_s, later.throttled_s), _gain(earlier.throttled_periods, later.throttled_periods), cpu,
        memory, io, later.runnable, _gain(earlier.major_faults, later.major_faults), later.waiting, later.late_thread,
    )  # fmt: skip


def _gain(earlier: N | None, later: N | None) -> N | None:
    return None if earlier is None or later is None or later < earlier else later - earlier


def waiting_s(intervals: Sequence[Interval]) -> float:
    """How long, at the least, the last safepoint has been waited for; 0 where none is."""
    total = 0.0
    for interval in reversed(intervals):
        if not interval.waiting:
            break
        total += interval.elapsed_s
    return total


def _not_reached_line(intervals: Sequence[Interval]) -> str:
    return (
        "Time to safepoint (TTSP) dominates: a safepoint was requested and has not been reached for at least "
        f"{duration(waiting_s(intervals))}; all other Java threads are stopped."
    )


def _not_reached(entity: Entity, intervals: Sequence[Interval]) -> Finding | None:
    last = intervals[-1]
    if not last.waiting:
        return None
    who = "a thread does not stop" if last.late_thread is None else f"thread {last.late_thread!r} does not stop"
    waited_s = waiting_s(intervals)
    return Finding(
        "safepoint-not-reached", "error", entity,
        f"a safepoint was requested, and {who}",
        f"for {duration(waited_s)} the VM thread has polled, and no counter has moved",
        "wait for the loop to end, or restart the JVM; a counted loop without polls is the usual cause",
        command("top", "-H", "-p", entity.name), window_s=waited_s,
    )  # fmt: skip


def _severity(whole: Interval) -> Severity:
    return "warning" if (whole.totals.ttsp_share or 0.0) > TOO_MUCH_TTSP or whole.waiting else "note"


def _throttled(entity: Entity, whole: Interval) -> Finding | None:
    if whole.throttled_s is None or whole.throttled_s / whole.elapsed_s < _THROTTLED_SHARE:
        return None
    return Finding(
        "cpu-throttled", "warning", entity,
        f"the CPU quota was used up: threads were held back for {duration(whole.throttled_s)}, summed over the CPUs",
        f"cpu.stat: {whole.throttled_periods or 0} more throttled periods in {duration(whole.elapsed_s)}",
        "raise the CPU limit, or start fewer threads (-XX:ActiveProcessorCount, -XX:ParallelGCThreads)",
        command("opskit", "jpmp", entity.name, "--on-cpu"), window_s=whole.elapsed_s,
    )  # fmt: skip


def _stalled(entity: Entity, whole: Interval, pressure_of: str | None) -> Finding | None:
    share = whole.memory_pressure_share
    if share is None or share < _STALLED_SHARE:
        return None
    who, faults = "tasks of its cgroup", ""
    if pressure_of != "cgroup":
        who = "tasks somewhere on the machine"
        faults = f"; this JVM had {whole.major_faults or 0:,} major faults meanwhile"
    return Finding(
        "memory-pressure", "warning", entity,
        f"{who} waited for memory {percent(share)} of the time: pages are reclaimed, refaulted or swapped in",
        f"memory pressure, some: {duration(share * whole.elapsed_s)} of {duration(whole.elapsed_s)}{faults}",
        "more memory for the cgroup, a smaller heap, no swap for JVMs",
        command("vmstat", 1), share, whole.elapsed_s,
    )  # fmt: skip


def _faults(entity: Entity, whole: Interval) -> Finding | None:
    if whole.major_faults is None or whole.major_faults / whole.elapsed_s < _FAULTS_PER_S:
        return None
    return Finding(
        "major-faults", _severity(whole), entity,
        f"{whole.major_faults / whole.elapsed_s:,.0f} page faults a second wait for a disk: a thread in one cannot stop",
        f"{whole.major_faults:,} major faults of the JVM in {duration(whole.elapsed_s)}",
        "no swap for JVMs, more memory, or smaller mapped files",
        command("vmstat", 1), window_s=whole.elapsed_s,
    )  # fmt: skip


def _crowded(entity: Entity, whole: Interval, cpus: int | None) -> Finding | None:
    others = None if whole.runnable is None else whole.runnable - 1  # the reader itself
    if cpus is None or others is None or others <= cpus:
        return None
    waited = whole.cpu_pressure_share
    psi = "" if waited is None else f"; some task waited for a CPU {percent(waited)} of the time"
    return Finding(
        "runnable-above-cpus", _severity(whole), entity,
        f"more threads want to run than there are CPUs: {others:.1f} on average for {cpus}",
        f"/proc/loadavg at each sample{psi}",
        "move other load away, start fewer threads, or add CPUs: a thread that does not run cannot stop either",
        command("top"), window_s=whole.elapsed_s,
    )  # fmt: skip
