"""The values of cells: what HdrHistogram's own classes say of a histogram, to the last bit.

Sources: getValueAtPercentile, getMean, getStdDeviation and getMaxValue of AbstractHistogram.java and DoubleHistogram.java.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, islice
from operator import mul
from typing import TYPE_CHECKING

from opskit.analysis.hdr.result import PERCENTS, Distribution, Step
from opskit.jvm.logs.hdr.codec import half_of, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.hdr.cells import Cells
    from opskit.jvm.logs.hdr.record import Layout

_EXACT = 1 << 53  # integers up to this are doubles, too
_MOST_KEPT = 1 << 17  # values in the middle of cells
ZERO = -(1 << 60)  # the cell of 0 among those of decimal values
NOTHING = Distribution(0, None, None, None, None, (None,) * len(PERCENTS))


class Scale:
    """The values of a layout's cells. `exponent`: a DoubleHistogram's ratio is the layout's scale times 2 to this."""

    def __init__(self, layout: Layout, exponent: int = 0) -> None:
        self.layout = layout
        self._half, self._unit = half_of(layout.digits), unit_of(layout.lowest)
        self.ratio = math.ldexp(layout.scale, exponent) if layout.decimal else 1
        self._shift = exponent << self._half if layout.decimal else 0
        self._middles = array("q")

    def indexes(self, cells: Sequence[int]) -> Sequence[int]:
        """The indexes in the integer histogram; the cells of decimal values count from the ratio's exponent 0."""
        if not self.layout.decimal:
            return cells
        return [0 if cell == ZERO else cell - self._shift for cell in cells]

    def _bucket(self, index: int) -> int:
        return max((index >> self._half) - 1, 0)

    def lowest(self, index: int) -> int:
        """The lowest integer of a cell."""
        bucket = self._bucket(index)
        return index - (bucket << self._half) << bucket + self._unit

    def highest(self, index: int) -> int:
        """The highest one."""
        return self.lowest(index) + (1 << self._bucket(index) + self._unit) - 1

    def middles(self, indexes: Sequence[int]) -> list[int]:
        """The values in the middle of some cells, which are in ascending order."""
        if not indexes:
            return []
        if (
            not 0 <= indexes[0] <= indexes[-1] < _MOST_KEPT
            or self._unit + (indexes[-1] >> self._half) + self._half > 62
        ):
            return [self.lowest(index) + (1 << self._bucket(index) + self._unit >> 1) for index in indexes]
        kept = self._middles
        while len(kept) <= indexes[-1]:  # a power of two more
            index = len(kept)
            width = 1 << self._bucket(index) + self._unit
            cells = (2 if not index else 1) << self._half
            first = self.lowest(index) + (width >> 1)
            kept.extend(range(first, first + cells * width, width))
        return list(map(kept.__getitem__, indexes))

    def shown(self, integer: int) -> float:
        """The value of an integer of the histogram."""
        return integer * self.ratio

    def most(self, index: int) -> float:
        """The highest value of a cell, as getMaxValue says it."""
        if not self.layout.decimal:
            return self.highest(index)
        return math.nextafter((self.highest(index) + 1) * self.ratio, 0.0) if index else 0.0


@lru_cache(maxsize=16)
def scale_of(layout: Layout, exponent: int = 0) -> Scale:
    """The same scale for all periods."""
    return Scale(layout, exponent)


def distribution(cells: Cells, scale: Scale, *, nearest: bool) -> Distribution:
    """What there is to say of counts. `nearest`: the rank of a percentile is rounded as HdrHistogram 2.1.0 and older did, not up."""
    runs = _Indexed(cells, scale)
    total, least, most = 0, None, 0
    for indexes, counts in runs:
        total += sum(counts)
        least, most = indexes[0] if least is None else least, indexes[-1]
    if least is None:
        return NOTHING
    mean = _mean(runs, scale, total)
    spread = 0.0
    for indexes, counts in runs:
        away = list(map(mean.__rsub__, scale.middles(indexes)))  # sum() would not round as the library does
        (spread,) = deque(accumulate(map(mul, map(mul, away, away), counts), initial=spread), maxlen=1)
    deviation = math.sqrt(spread / total) * scale.ratio
    ranks = [_rank(percent, total, nearest=nearest) for percent in PERCENTS]
    return Distribution(
        total, scale.shown(scale.lowest(least)), scale.most(most), mean * scale.ratio, deviation, _at(runs, scale, ranks)
    )  # fmt: skip


class _Indexed:
    """The runs of cells by their indexes in the integer histogram."""

    def __init__(self, cells: Cells, scale: Scale) -> None:
        self._cells, self._scale = cells, scale
        self._first = list(islice(cells.runs(), 2))  # most have one run only

    def __iter__(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        runs = self._first if len(self._first) < 2 else self._cells.runs()
        return ((self._scale.indexes(cells), counts) for cells, counts in runs)


def _mean(runs: _Indexed, scale: Scale, total: int) -> float:
    whole = sum(sum(map(mul, scale.middles(indexes), counts)) for indexes, counts in runs)
    if whole <= _EXACT:
        return float(whole) / float(total)
    added = 0.0  # one by one, as the library does: each sum is rounded
    for indexes, counts in runs:
        for product in map(mul, scale.middles(indexes), counts):
            added += product
    return added / float(total)


def _rank(percent: float, total: int, *, nearest: bool) -> int:
    if nearest:
        return max(int(percent / 100.0 * total + 0.5), 1)
    return max(math.ceil(math.nextafter(percent, -math.inf) * total / 100.0), 1)


def _at(runs: _Indexed, scale: Scale, ranks: Sequence[int]) -> tuple[float | None, ...]:
    found: list[float] = []
    before = 0
    for indexes, counts in runs:
        sums = list(accumulate(counts, initial=before))
        while len(found) < len(ranks) and ranks[len(found)] <= sums[-1]:
            place = bisect_left(sums, ranks[len(found)], 1) - 1
            found.append(scale.shown(scale.highest(indexes[place])))
        before, last = sums[-1], indexes[-1]
    return tuple(found + [scale.shown(scale.highest(last))] * (len(ranks) - len(found)))


class Curve(Sequence[Step]):
    """The cells that are used, as points of a percentile curve: made when they are asked for."""

    def __init__(self, cells: Cells, scale: Scale) -> None:
        self._cells, self._scale = cells, scale

    @cached_property
    def _steps(self) -> tuple[array[int], array[int]]:
        """The indexes, and how many values are up to each."""
        all_indexes, sums = array("q"), array("q")
        for indexes, counts in self._cells.runs():
            all_indexes.extend(self._scale.indexes(indexes))
            before = sums[-1] if sums else 0
            sums.extend(accumulate(counts[1:], initial=before + counts[0]))
        return all_indexes, sums

    def __len__(self) -> int:
        return len(self._steps[0])

    def __getitem__(self, place):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204
        """A point, or a list of them for a slice."""
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        (indexes, sums), scale = self._steps, self._scale
        return Step(scale.shown(scale.highest(indexes[place])), sums[place] / sums[-1], sums[place])
