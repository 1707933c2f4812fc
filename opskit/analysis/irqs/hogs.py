"""Real-time threads as the cause of stalls: the scheduler runs them before a meter, and before every ordinary thread. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.irqs.jitter import HOGS
from opskit.quantities import duration, percent, plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.collect.irqs.jitter import Facts
    from opskit.collect.irqs.real_time import RealTime

_LONG_S = 300e-6  # shorter stalls are not explained, nor threads that keep a CPU for less on average
_MOST_OF_IT = 0.5


class Blame(NamedTuple):
    """The real-time threads that take a CPU, the busiest first. `is_unmeasured`: they left nothing to the meter."""

    cpu: int
    threads: tuple[RealTime, ...]
    is_unmeasured: bool = False

    @property
    def sentence(self) -> str:
        """`Most stalls of CPU 1: real-time thread 4242 (python3, SCHED_FIFO) ran there for 10 ms at a time, 10 % of the time`."""
        first, *others = self.threads
        process = first.process
        name = process.command if first.tid == process.pid else f"{first.name} of {process.pid} {process.command}"
        kept = f"for {duration(first.slice_s)} at a time, " if first.slice_s is not None else ""
        more = f"; {plural(len(others), 'more such thread')}" if others else ""
        what = f"CPU {self.cpu} could not be measured" if self.is_unmeasured else f"Most stalls of CPU {self.cpu}"
        kind = f"SCHED_{first.policy.upper()}"
        there = "there " if first.allowed == {self.cpu} else ""  # else a part of it elsewhere, perhaps
        return f"{what}: real-time thread {first.tid} ({name}, {kind}) ran {there}{kept}{percent(first.running)} of the time{more}"


def blamed(facts: Facts) -> Iterator[Blame]:
    """The CPUs whose stalls such threads explain: they ran for at least half as long as the stalls lasted together, and as long at a time."""
    for meter in facts.meters:
        stalled_s = sum(stall.lasted_s for stall in meter.stalls if stall.lasted_s >= _LONG_S)
        threads = _on(facts.real_time, meter.cpu)
        ran_s = sum(each.running for each in threads) * meter.elapsed_s
        if threads and stalled_s and ran_s >= _MOST_OF_IT * stalled_s:
            yield Blame(meter.cpu, threads)
    for cpu, _ in facts.failed:
        threads = tuple(each for each in _on(facts.real_time, cpu) if each.running >= HOGS)
        if threads:
            yield Blame(cpu, threads, is_unmeasured=True)


def _on(threads: Sequence[RealTime], cpu: int) -> tuple[RealTime, ...]:
    """Those that are pinned to a CPU or ran there last, and that keep it for long. None: how long is unknown."""
    return tuple(
        each
        for each in threads
        if (each.allowed == {cpu} or each.cpu == cpu) and (each.slice_s is None or each.slice_s >= _LONG_S)
    )
