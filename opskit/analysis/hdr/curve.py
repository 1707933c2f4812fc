"""The percentile curve of a series: the levels that HdrHistogram writes, and as many points as a picture can show."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.hdr.result import Step

ALL = 100.0
_TICKS = 5  # of each half of the distance to 100 %, HdrHistogram's default
_POINTS = 800  # of a curve in a picture


class Level(NamedTuple):
    """A per cent (0 to 100) and the first cell that reaches it: so many values are up to `value`."""

    percent: float
    value: float
    total: int


def levels(curve: Sequence[Step], *, printed: bool = False) -> Iterator[Level]:
    """The levels of HdrHistogram's PercentileIterator, with five ticks each half distance; the last one is 100 %.

    Of a curve that a load generator printed the points are the levels.
    """
    if printed:
        yield from (Level(step.share * ALL, step.value, step.total) for step in curve)
        return
    total = curve[-1].total if curve else 0
    percent = 0.0
    for step in curve:
        while ALL * step.total / total >= percent:
            yield Level(percent, step.value, step.total)
            percent += ALL / (_TICKS * 2 ** (int(math.log(ALL / (ALL - percent)) / math.log(2)) + 1))
            if step.total >= total:
                yield Level(ALL, step.value, step.total)
                return


def points(curve: Sequence[Step]) -> list[tuple[float, float]]:
    """The curve as steps: up to x, the values are y; x is 1 / (1 - share), 10 for 90 %, 100 for 99 %.

    It ends at twice the number of values, at 10 at least: from that number on there is only the highest one.
    """
    if not curve:
        return []
    total = curve[-1].total
    end = max(2.0 * total, 10.0)
    width = math.log(end) / _POINTS
    found = [(1.0, curve[0].value)]
    for step in curve:
        x = end if step.total >= total else total / (total - step.total)
        if len(found) > 1 and math.log(x / found[-2][0]) < width:
            found.pop()  # of the cells of one pixel the highest
        found.append((x, step.value))
    return found
