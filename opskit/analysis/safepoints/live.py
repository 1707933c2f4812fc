"""A live JVM's safepoints between readings of its counters, and what delayed the JVM meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opskit.analysis.finding import Entity, Finding, Severity, most_severe_first
from opskit.analysis.safepoints.advice import TOO_MUCH_TTSP, Figures, Jdk, advise, verdict
from opskit.quantities import duration, percent
from opskit.shell import command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.safepoints.counters import Reading
    from opskit.collect.safepoints.live import Facts

_THROTTLED_SHARE = 0.01
_STALLED_SHARE = 0.05
_FAULTS_PER_S = 50.0


class Interval(NamedTuple):
    """What happened between two readings. `at_s`: its end, since the first reading. Shares are of `elapsed_s`, `ttsp_share` of `stopped_s`."""

    at_s: float
    elapsed_s: float
    safepoints: int
    stopped_s: float
    ttsp_s: float | None = None
    throttled_s: float | None = None
    throttled_periods: int | None = None
    cpu_stalled_s: float | None = None
    memory_stalled_s: float | None = None
    io_stalled_s: float | None = None
    runnable: float | None = None
    major_faults: int | None = None
    waiting: bool = False
    late_thread: str | None = None

    @property
    def safepoints_per_s(self) -> float:
        """Safepoints a second."""
        return self.safepoints / self.elapsed_s

    @property
    def stopped_share(self) -> float:
        """The part of the time in which the application was stopped."""
        return self.stopped_s / self.elapsed_s

    @property
    def stopped_avg_s(self) -> float | None:
        """The mean stop; None without one."""
        return self.stopped_s / self.safepoints if self.safepoints else None

    @property
    def ttsp_avg_s(self) -> float | None:
        """The mean TTSP."""
        return self.ttsp_s / self.safepoints if self.ttsp_s is not None and self.safepoints else None

    @property
    def ttsp_share(self) -> float | None:
        """The part of the stopped time that was TTSP."""
        return self.ttsp_s / self.stopped_s if self.ttsp_s is not None and self.stopped_s else None

    @property
    def cpu_pressure_share(self) -> float | None:
        """The part of the time in which some task waited for a CPU."""
        return self._share(self.cpu_stalled_s)

    @property
    def memory_pressure_share(self) -> float | None:
        """The same for memory."""
        return self._share(self.memory_stalled_s)

    @property
    def io_pressure_share(self) -> float | None:
        """The same for a disk."""
        return self._share(self.io_stalled_s)

    def _share(self, stalled_s: float | None) -> float | None:
        return None if stalled_s is None else stalled_s / self.elapsed_s


class Result(NamedTuple):
    """The intervals, and all of them as one."""

    facts: Facts
    whole: Interval
    intervals: Sequence[Interval]
    verdict: str
    findings: Sequence[Finding]


def judge(facts: Facts) -> Result:
    """What stands out: what delayed the JVM was measured, and comes before what its safepoints alone suggest."""
    readings = facts.readings
    begun_s = readings[0].at_s
    intervals = [between(earlier, later, begun_s) for earlier, later in zip(readings, readings[1:])]
    known = [interval.runnable for interval in intervals if interval.runnable is not None]
    whole = between(readings[0], readings[-1], begun_s)._replace(runnable=sum(known) / len(known) if known else None)
    figures = Figures(whole.safepoints, whole.stopped_s, whole.elapsed_s, None, whole.ttsp_s, whole.ttsp_share)
    entity = Entity("process", facts.pid, facts.start_ticks)
    found = [
        _not_reached(entity, intervals),
        _throttled(entity, whole),
        _stalled(entity, whole, facts.pressure_of),
        _faults(entity, whole),
        _crowded(entity, whole, facts.cpus),
        *advise(entity, figures, Jdk(facts.jdk, facts.jdk)),
    ]
    said = _not_reached_line(intervals) if whole.waiting else verdict(figures, ())
    return Result(facts, whole, intervals, said, most_severe_first(one for one in found if one is not None))


def between(earlier: Reading, later: Reading, begun_s: float) -> Interval:
    """The difference of two readings. A counter that ran backwards tells nothing."""
    return Interval(
        at_s=later.at_s - begun_s,
        elapsed_s=later.at_s - earlier.at_s,
        safepoints=max(later.safepoints - earlier.safepoints, 0),
        stopped_s=max(later.stopped_s - earlier.stopped_s, 0.0),
        ttsp_s=_gain(earlier.ttsp_s, later.ttsp_s),
        throttled_s=_gain(earlier.throttled_s, later.throttled_s),
        throttled_periods=_whole_gain(earlier.throttled_periods, later.throttled_periods),
        cpu_stalled_s=_gain(earlier.cpu_stalled_s, later.cpu_stalled_s),
        memory_stalled_s=_gain(earlier.memory_stalled_s, later.memory_stalled_s),
        io_stalled_s=_gain(earlier.io_stalled_s, later.io_stalled_s),
        runnable=later.runnable,
        major_faults=_whole_gain(earlier.major_faults, later.major_faults),
        waiting=later.waiting,
        late_thread=later.late_thread,
    )


def _gain(earlier: float | None, later: float | None) -> float | None:
    if earlier is None or later is None or later < earlier:
        return None
    return later - earlier


def _whole_gain(earlier: int | None, later: int | None) -> int | None:
    gain = _gain(earlier, later)
    return None if gain is None else int(gain)


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
        "safepoint-not-reached",
        "error",
        entity,
        f"a safepoint was requested, and {who}",
        f"for {duration(waited_s)} the VM thread has polled, and no counter has moved",
        "wait for the loop to end, or restart the JVM; a counted loop without polls is the usual cause",
        command("top", "-H", "-p", entity.name),
        window_s=waited_s,
    )


def _severity(whole: Interval) -> Severity:
    return "warning" if (whole.ttsp_share or 0.0) > TOO_MUCH_TTSP or whole.waiting else "note"


def _throttled(entity: Entity, whole: Interval) -> Finding | None:
    if whole.throttled_s is None or whole.throttled_s / whole.elapsed_s < _THROTTLED_SHARE:
        return None
    return Finding(
        "cpu-throttled",
        "warning",
        entity,
        f"the CPU quota was used up: threads were held back for {duration(whole.throttled_s)}, summed over the CPUs",
        f"cpu.stat: {whole.throttled_periods or 0} more throttled periods in {duration(whole.elapsed_s)}",
        "raise the CPU limit, or start fewer threads (-XX:ActiveProcessorCount, -XX:ParallelGCThreads)",
        command("opskit", "jpmp", entity.name, "--on-cpu"),
        window_s=whole.elapsed_s,
    )


def _stalled(entity: Entity, whole: Interval, pressure_of: str | None) -> Finding | None:
    share = whole.memory_pressure_share
    if share is None or share < _STALLED_SHARE:
        return None
    who, faults = "tasks of its cgroup", ""
    if pressure_of != "cgroup":
        who = "tasks somewhere on the machine"
        faults = f"; this JVM had {whole.major_faults or 0:,} major faults meanwhile"
    return Finding(
        "memory-pressure",
        "warning",
        entity,
        f"{who} waited for memory {percent(share)} of the time: pages are reclaimed, refaulted or swapped in",
        f"memory pressure, some: {duration(whole.memory_stalled_s)} of {duration(whole.elapsed_s)}{faults}",
        "more memory for the cgroup, a smaller heap, no swap for JVMs",
        command("vmstat", 1),
        share,
        whole.elapsed_s,
    )


def _faults(entity: Entity, whole: Interval) -> Finding | None:
    if whole.major_faults is None or whole.major_faults / whole.elapsed_s < _FAULTS_PER_S:
        return None
    return Finding(
        "major-faults",
        _severity(whole),
        entity,
        f"{whole.major_faults / whole.elapsed_s:,.0f} page faults a second wait for a disk: a thread in one cannot stop",
        f"{whole.major_faults:,} major faults of the JVM in {duration(whole.elapsed_s)}",
        "no swap for JVMs, more memory, or smaller mapped files",
        command("vmstat", 1),
        window_s=whole.elapsed_s,
    )


def _crowded(entity: Entity, whole: Interval, cpus: int | None) -> Finding | None:
    others = None if whole.runnable is None else whole.runnable - 1  # the reader itself
    if cpus is None or others is None or others <= cpus:
        return None
    waited = whole.cpu_pressure_share
    psi = "" if waited is None else f"; some task waited for a CPU {percent(waited)} of the time"
    return Finding(
        "runnable-above-cpus",
        _severity(whole),
        entity,
        f"more threads want to run than there are CPUs: {others:.1f} on average for {cpus}",
        f"/proc/loadavg at each sample{psi}",
        "move other load away, start fewer threads, or add CPUs: a thread that does not run cannot stop either",
        command("top"),
        window_s=whole.elapsed_s,
    )
