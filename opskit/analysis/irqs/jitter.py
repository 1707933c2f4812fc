"""What a hiccup meter saw on each CPU, in percentiles. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.hdr_histogram import HdrHistogram
from opskit.analysis.irqs.hogs import Blame, blamed
from opskit.quantities import duration, number_ranges, percent, plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.collect.irqs.jitter import Facts, Meter, Stall

PERCENTS = (50.0, 90.0, 99.0, 99.9, 99.99)
_LONG_S = 0.001  # a stall that is worth a sentence
_MOST_HOGS = 3
UNSEEN_SLEEPING = (
    "A meter that sleeps sees each stall of more than 1 ms, and of one of 300 us about a third: --spin sees them too. It preempts threads that use up "
    "their time: those wait longer than it does."
)
UNSEEN_SPINNING = (
    "A meter that spins sees gaps from 5 us on, also those in which other threads ran on its CPU. It keeps the CPU from sleeping: an idle one wakes up later than it shows."
)  # fmt: skip


class Row(NamedTuple):
    """A CPU. Lateness (spin: gaps) in seconds: the least, percentiles as PERCENTS, the longest; None: there was none. `samples`: how many.

    `lost`: share of the time that was lost in gaps (spin). `cpu`: share of one CPU that measuring took.
    """

    meter: Meter
    samples: int
    least_s: float | None
    percentiles_s: tuple[float | None, ...]
    most_s: float | None
    cpu: float
    lost: float | None = None


class Moment(NamedTuple):
    """A stall, and its CPU."""

    cpu: int
    stall: Stall


class Result(NamedTuple):
    """`verdict`: sentences, the first is the answer. `rows`: by CPU. `stalls`: the longest ones of all CPUs, the longest first.

    `hogs`: the CPUs whose stalls come from real-time threads.
    """

    facts: Facts
    verdict: tuple[str, ...]
    rows: tuple[Row, ...]
    stalls: tuple[Moment, ...]
    unseen: str
    hogs: tuple[Blame, ...] = ()


def judge(facts: Facts) -> Result:
    """Percentiles of each CPU, and the longest stalls of all."""
    rows = tuple(map(_row, facts.meters))
    stalls = sorted(
        (Moment(meter.cpu, stall) for meter in facts.meters for stall in meter.stalls),
        key=lambda it: -it.stall.lasted_s,
    )
    unseen = UNSEEN_SPINNING if facts.ask.spin else UNSEEN_SLEEPING
    hogs = tuple(blamed(facts))
    return Result(facts, tuple(_verdict(facts, rows, hogs)), rows, tuple(stalls), unseen, hogs)


def _row(meter: Meter) -> Row:
    histogram = HdrHistogram(3)
    for late_ns, times in meter.late_ns.items():
        histogram.record(max(late_ns, 0), times)
    found: list[float | None] = [ns / 1e9 for ns in histogram.percentiles(PERCENTS)]
    longest = max((stall.lasted_s for stall in meter.stalls), default=None)
    most_s = longest if longest is not None else None if histogram.most is None else histogram.most / 1e9
    return Row(
        meter, histogram.total, None if histogram.least is None else histogram.least / 1e9, tuple(found or [None] * len(PERCENTS)), most_s,
        meter.cpu_s / meter.elapsed_s if meter.elapsed_s else 0.0,
        None if meter.stalled_s is None or not meter.elapsed_s else meter.stalled_s / meter.elapsed_s,
    )  # fmt: skip


def _verdict(facts: Facts, rows: tuple[Row, ...], hogs: Sequence[Blame]) -> Iterator[str]:
    """The CPU with the longest stall and what causes it, then what all of them have in common."""
    if facts.interrupted:
        seen_s = max((meter.elapsed_s for meter in facts.meters), default=0.0)
        yield f"Interrupted after {duration(seen_s)} of {duration(facts.ask.window_s)}."
    worst = max(rows, key=lambda row: row.most_s or 0.0, default=None)
    if worst is not None:
        yield _spun(worst) if facts.ask.spin else _slept(worst)
    elif not hogs and facts.failed:
        yield f"No CPU could be measured: {facts.failed[0][1]}."
    yield from (f"{blame.sentence}." for blame in hogs[:_MOST_HOGS])
    if len(hogs) > _MOST_HOGS:
        yield f"Real-time threads cause stalls on {plural(len(hogs) - _MOST_HOGS, 'more CPU')}."
    if len(rows) > 1:
        typical = sorted(row.percentiles_s[0] or 0.0 for row in rows)
        most = max(rows, key=lambda row: row.lost or 0.0)
        if facts.ask.spin:
            yield f"Of {plural(len(rows), 'CPU')}, CPU {most.meter.cpu} loses the most time: {percent(most.lost)}."
        else:
            long = [row.meter.cpu for row in rows if (row.most_s or 0.0) >= _LONG_S]
            which = (
                f"stalls above {duration(_LONG_S)} on CPU {number_ranges(long)}"
                if long
                else f"no stall above {duration(_LONG_S)}"
            )
            yield f"{plural(len(rows), 'CPU')}: median {duration(typical[0])} to {duration(typical[-1])}; {which}."


def _slept(row: Row) -> str:
    if not row.samples:
        return f"No wake-up was due on CPU {row.meter.cpu} within {duration(row.meter.elapsed_s)}; give a longer -i."
    median, _, p99, *_ = row.percentiles_s
    return f"CPU {row.meter.cpu} was late by {duration(row.most_s)} at most: half of its wake-ups by {duration(median)} or less, 99 % by {duration(p99)} or less."


def _spun(row: Row) -> str:
    if not row.samples:
        return f"CPU {row.meter.cpu} was not interrupted for 5 us or more."
    return (
        f"CPU {row.meter.cpu} was interrupted for {duration(row.most_s)} at most, {row.samples / row.meter.elapsed_s:,.0f} times a second, "
        f"{percent(row.lost)} of its time in all."
    )
