"""A live JVM's safepoints between two readings of its counters, and what held the JVM up meanwhile. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Finding, Severity, most_severe_first
from opskit.analysis.safepoint_advice import TOO_MUCH_TTSP, Figures, Jdk, advise, duration, percent, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.perfdata.safepoint_counters import Reading

_THROTTLED_SHARE = 0.01
_STALLED_SHARE = 0.05
_FAULTS_PER_S = 50.0


@dataclass(frozen=True)
class Interval:
    """What happened between two readings; shares are of `elapsed_s`, `ttsp_share` of `stopped_s`."""

    at_s: float
    elapsed_s: float
    safepoints: int
    stopped_s: float
    ttsp_s: float | None
    throttled_s: float | None
    throttled_periods: int | None
    cpu_stalled_s: float | None
    memory_stalled_s: float | None
    io_stalled_s: float | None
    runnable: float | None
    major_faults: int | None
    waiting: bool
    late_thread: str | None

    @property
    def per_s(self) -> float:
        """Safepoints a second."""
        return self.safepoints / self.elapsed_s

    @property
    def stopped_share(self) -> float:
        """The part of the time that the application stood still."""
        return self.stopped_s / self.elapsed_s

    @property
    def stopped_avg_s(self) -> float | None:
        """The mean stop; None without one."""
        return self.stopped_s / self.safepoints if self.safepoints else None

    @property
    def ttsp_avg_s(self) -> float | None:
        """The mean time to the safepoint."""
        return self.ttsp_s / self.safepoints if self.ttsp_s is not None and self.safepoints else None

    @property
    def ttsp_share(self) -> float | None:
        """The part of the stopped time that was the way there."""
        return self.ttsp_s / self.stopped_s if self.ttsp_s is not None and self.stopped_s else None

    def share(self, stalled_s: float | None) -> float | None:
        """A part of the interval."""
        return None if stalled_s is None else stalled_s / self.elapsed_s


def between(earlier: Reading, later: Reading) -> Interval:
    """The difference of two readings. A counter that ran backwards tells nothing."""
    return Interval(
        at_s=later.at_s,
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


def overall(readings: Sequence[Reading], intervals: Sequence[Interval]) -> Interval:
    """All intervals as one: from the first reading to the last."""
    known = [interval.runnable for interval in intervals if interval.runnable is not None]
    return replace(between(readings[0], readings[-1]), runnable=sum(known) / len(known) if known else None)


def waiting_s(intervals: Sequence[Interval]) -> float:
    """How long, at the least, the last safepoint has been waited for; 0 where none is."""
    total = 0.0
    for interval in reversed(intervals):
        if not interval.waiting:
            break
        total += interval.elapsed_s
    return total


def figures(whole: Interval) -> Figures:
    """What the verdict is about."""
    return Figures(whole.safepoints, whole.stopped_s, whole.elapsed_s, None, whole.ttsp_s, whole.ttsp_share)


def verdict_live(whole: Interval, intervals: Sequence[Interval]) -> str:
    """The sentence; a safepoint that is not reached comes before all else."""
    if not intervals[-1].waiting:
        return verdict(figures(whole), ())
    return (
        f"The way to the safepoint (TTSP) dominates: one was asked for and has not been reached for "
        f"{duration(waiting_s(intervals))} at least; all threads that obey stand still."
    )


def advise_live(
    subject: str,
    whole: Interval,
    intervals: Sequence[Interval],
    jdk: Jdk,
    cpus: int | None,
    pressure_of: str | None = None,
) -> list[Finding]:
    """What stands out: what held the JVM up was measured, and comes before what its safepoints alone suggest.

    `pressure_of`: "cgroup" or "machine", whose pressure the intervals have.
    """
    found = [
        *_under_way(subject, intervals),
        *_throttled(subject, whole),
        *_stalled(subject, whole, pressure_of),
        *_faults(subject, whole),
        *_crowded(subject, whole, cpus),
        *advise(subject, figures(whole), jdk),
    ]
    return most_severe_first(found)


def _under_way(subject: str, intervals: Sequence[Interval]) -> list[Finding]:
    last = intervals[-1]
    if not last.waiting:
        return []
    return [
        Finding(
            "safepoint-not-reached",
            "error",
            subject,
            "a safepoint was asked for, and a thread does not stop"
            + ("" if last.late_thread is None else f": {last.late_thread!r} runs on"),
            f"for {duration(waiting_s(intervals))} the VM thread has polled, and no counter has moved",
            f"see what it runs: {shell.command('opskit', 'jpmp', subject)}, or where the JVM does not answer: "
            f"{shell.command('top', '-H', '-p', subject)}; a counted loop without polls is the usual reason",
        )
    ]


def _severity(whole: Interval) -> Severity:
    return "warning" if (whole.ttsp_share or 0.0) > TOO_MUCH_TTSP or whole.waiting else "note"


def _throttled(subject: str, whole: Interval) -> list[Finding]:
    share = whole.share(whole.throttled_s)
    if share is None or share < _THROTTLED_SHARE:
        return []
    return [
        Finding(
            "cpu-throttled",
            "warning",
            subject,
            f"the container's CPU quota was used up: its threads were held back for {duration(whole.throttled_s)}, summed "
            "over the CPUs",
            f"cpu.stat: {whole.throttled_periods or 0} more throttled periods in {duration(whole.elapsed_s)}",
            "raise the CPU limit, or let the JVM use fewer threads (-XX:ActiveProcessorCount, -XX:ParallelGCThreads)",
        )
    ]


def _stalled(subject: str, whole: Interval, pressure_of: str | None) -> list[Finding]:
    share = whole.share(whole.memory_stalled_s)
    if share is None or share < _STALLED_SHARE:
        return []
    who, first = (
        "tasks somewhere on the machine",
        f"see who waits: this JVM had {whole.major_faults or 0:,} major faults meanwhile; ",
    )
    if pressure_of == "cgroup":
        who, first = "tasks of its cgroup", ""
    return [
        Finding(
            "memory-pressure",
            "warning",
            subject,
            f"{who} waited for memory {percent(share)} of the time: pages are reclaimed, refaulted or swapped in",
            f"memory pressure, some: {duration(whole.memory_stalled_s)} of {duration(whole.elapsed_s)}",
            f"{first}more memory for the container, a smaller heap, no swap under a JVM: vmstat 1",
        )
    ]


def _crowded(subject: str, whole: Interval, cpus: int | None) -> list[Finding]:
    others = None if whole.runnable is None else whole.runnable - 1  # the reader itself
    if cpus is None or others is None or others <= cpus:
        return []
    return [
        Finding(
            "runnable-above-cpus",
            _severity(whole),
            subject,
            f"more threads want to run than there are CPUs: {others:.1f} on average for {cpus}",
            "/proc/loadavg at each sample"
            + (
                ""
                if whole.cpu_stalled_s is None
                else f"; some task waited for a CPU {percent(whole.share(whole.cpu_stalled_s))} of the time"
            ),
            "a thread that is not running cannot stop either: find who burns CPU with top, move it or add CPUs",
        )
    ]


def _faults(subject: str, whole: Interval) -> list[Finding]:
    if whole.major_faults is None or whole.major_faults / whole.elapsed_s < _FAULTS_PER_S:
        return []
    return [
        Finding(
            "major-faults",
            _severity(whole),
            subject,
            f"{whole.major_faults / whole.elapsed_s:,.0f} page faults a second wait for a disk: a thread in one cannot stop",
            f"{whole.major_faults:,} major faults of the JVM in {duration(whole.elapsed_s)}",
            "swap (vmstat 1), memory mapped files, or a page cache that is too small for them",
        )
    ]
