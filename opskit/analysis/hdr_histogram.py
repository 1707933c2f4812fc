"""A log-linear histogram with a given number of significant digits (HdrHistogram): exact percentiles within that precision. Pure.

Values up to 2 x 10^digits are kept as they are; above, each power of two is divided into as many cells, so that a cell is never wider
than 10^-digits of its values. Memory follows the cells that are used, not the range. http://hdrhistogram.org
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_DIGITS = 5


class HdrHistogram:
    """Counts of integers from 0 up. `total`: how many there are; `least` and `most`: the lowest and the highest, exactly."""

    def __init__(self, digits: int = 3) -> None:
        """`digits`: 1 to 5 significant ones. Raises ValueError."""
        if not 1 <= digits <= MOST_DIGITS:
            raise ValueError(f"{digits} is not a number of digits from 1 to {MOST_DIGITS}")
        self.digits = digits
        self._bits = math.ceil(math.log2(2 * 10**digits))  # of a value within its cell's power of two
        self._cells: dict[int, int] = {}
        self.total = 0
        self.least: int | None = None
        self.most: int | None = None

    def record(self, value: int, times: int = 1) -> None:
        """Add a value, which counts so often. Raises ValueError for a negative one."""
        if value < 0 or times < 0:
            raise ValueError("a histogram counts values from 0 up")
        if not times:
            return
        lowest = self.lowest_alike(value)
        self._cells[lowest] = self._cells.get(lowest, 0) + times
        self.total += times
        self.least = value if self.least is None else min(self.least, value)
        self.most = value if self.most is None else max(self.most, value)

    def add(self, other: HdrHistogram) -> None:
        """Add all values of another one. It may have more digits, not fewer. Raises ValueError."""
        if other.digits < self.digits:
            raise ValueError("a histogram with fewer digits cannot be added")
        ends = [end for end in (self.least, self.most, other.least, other.most) if end is not None]
        for lowest, times in other._cells.items():
            self.record(lowest, times)
        if ends:  # the cells have the lowest value alike
            self.least, self.most = min(ends), max(ends)

    def lowest_alike(self, value: int) -> int:
        """The lowest value that is counted in the same cell."""
        shift = max(0, value.bit_length() - self._bits)
        return value >> shift << shift

    def highest_alike(self, value: int) -> int:
        """The highest one."""
        shift = max(0, value.bit_length() - self._bits)
        return (value >> shift << shift) + (1 << shift) - 1

    def percentile(self, percent: float) -> int | None:
        """The value that so many per cent of the values do not exceed (0 to 100); None without values."""
        return next(iter(self.percentiles([percent])), None) if self.total else None

    def percentiles(self, percents: Iterable[float]) -> list[int]:
        """Several at once, in ascending order of the per cents; none without values."""
        wanted = [max(1, math.ceil(min(max(each, 0.0), 100.0) / 100 * self.total - 1e-9)) for each in percents]
        found: list[int] = []
        seen = 0
        for lowest, times in self:
            seen += times
            while len(found) < len(wanted) and seen >= wanted[len(found)]:
                found.append(min(self.highest_alike(lowest), self.most or 0))
        return found

    def above(self, value: int) -> int:
        """How many values are in higher cells than this one's."""
        return sum(times for lowest, times in self._cells.items() if lowest > value)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """The lowest value of each cell that is used, ascending, and how many values it has."""
        return iter(sorted(self._cells.items()))
