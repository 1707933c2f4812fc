"""Series of latency logs made by hand, and what a judge says of them."""

from __future__ import annotations

import math
import random

from opskit.analysis.hdr.judge import Side
from opskit.analysis.hdr.result import PERCENTS, Distribution, Period, Series, Step
from opskit.analysis.hdr_histogram import HdrHistogram
from opskit.collect.hdr.facts import BadLine, Facts

BEGIN_S = 1_700_000_000.0


def histogram(values, digits=3):
    """A histogram of integers."""
    found = HdrHistogram(digits)
    for value in values:
        found.record(round(value))
    return found


def distribution(found):
    """As HdrHistogram's classes have it: percentiles and the maximum are the highest values of their cells."""
    if not found.total:
        return Distribution(0, None, None, None, None, (None,) * len(PERCENTS))
    cells = [((found.lowest_alike(low) + found.highest_alike(low) + 1) // 2, times) for low, times in found]
    mean = sum(middle * times for middle, times in cells) / found.total
    deviation = math.sqrt(sum((middle - mean) ** 2 * times for middle, times in cells) / found.total)
    return Distribution(
        found.total,
        found.least,
        found.highest_alike(found.most),
        mean,
        deviation,
        tuple(map(found.highest_alike, found.percentiles(PERCENTS))),
    )


def curve(found):
    """Each cell that is used."""
    steps, seen = [], 0
    for low, times in found:
        seen += times
        steps.append(Step(found.highest_alike(low), seen / found.total, seen))
    return steps


def latencies(number, seed=1, scale=200_000, stalls=1000):
    """Latencies in ns: a log-normal body; one of `stalls` waits for 50 ms more."""
    rng = random.Random(seed)  # noqa: S311
    return [scale * math.exp(rng.gauss(0, 0.5)) + (50e6 if rng.randrange(stalls) == 0 else 0) for _ in range(number)]


def series(
    values, tag=None, *, files=("throttle.hdr",), digits=3, seconds=60.0, begin_s=BEGIN_S, by_s=None, unit=None, dated=True
):  # fmt: skip
    """A series of these values, spread over so many seconds."""
    whole = histogram(values, digits)
    periods = []
    if by_s:
        number = round(seconds / by_s)
        share = -(-len(values) // number)
        for place in range(number):
            part = histogram(values[place * share : (place + 1) * share], digits)
            periods.append(Period(begin_s + place * by_s, by_s, distribution(part)))
    return Series(
        tuple(files), tag, digits, round(seconds), dated, begin_s, begin_s + seconds, seconds, len(values) / seconds,
        distribution(whole), curve(whole), periods, unit, 27,
    )  # fmt: skip


def facts(names=("throttle.hdr",), bad=(), cut=()):
    """What was read besides; `bad`: (file, number, why)."""
    lines = [BadLine(*each) for each in bad]
    return Facts(list(names), 65, 60, len(lines), lines, list(cut))


def side(*all_series, **more):
    """A side of a judgement: its series, and the facts and tags that go with them."""
    read = more.pop("facts", None) or facts(dict.fromkeys(name for each in all_series for name in each.files))
    return Side(read, list(all_series), more.pop("tags", [each.tag for each in all_series]), **more)
