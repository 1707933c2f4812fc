"""A series while it is summed."""

from __future__ import annotations

import math
from copy import copy
from typing import TYPE_CHECKING

from opskit.analysis.hdr.cells import Cells, Full, Space
from opskit.analysis.hdr.decimals import Range
from opskit.analysis.hdr.periods import Rows
from opskit.analysis.hdr.result import Distribution, Period, Series
from opskit.analysis.hdr.values import ZERO, Curve, Scale, distribution, scale_of
from opskit.errors import UsageError
from opskit.jvm.logs.hdr.codec import BadHistogram, half_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.jvm.logs.hdr.record import Interval

_OPEN, _OPEN_MERGED = 2, 4  # periods; the clocks of several machines differ
_MOST_PERIODS = 200_000
_MOST_NAMES = 1000
_US = 1e6


class Part:
    """Counts of a series or of one of its periods."""

    def __init__(self, first: Interval, space: Space) -> None:
        self.cells = Cells(space)
        self._first = first.payload
        self._version = first.payload.version
        self._intervals = 0
        self._range = Range(first.payload)
        self.covered_s = 0.0

    def add(self, interval: Interval) -> None:
        """Add its counts. Raises Full."""
        payload = interval.payload
        if payload.layout.decimal:
            self._add_decimals(interval)
        else:
            self.cells.add(interval.counts)
        self._version = max(self._version, payload.version)
        self._intervals += 1

    def _add_decimals(self, interval: Interval) -> None:
        payload, half = interval.payload, half_of(interval.payload.layout.digits)
        pairs = list(_pairs(interval))
        exponent = math.frexp(payload.ratio)[1]
        own, moved = scale_of(payload.layout, exponent), copy(self._range)
        try:
            moved.add([own.lowest(index) * payload.ratio for index, _ in pairs if index])
        except BadHistogram as why:
            raise Full(str(why)) from None
        blocks = [(_cell(index, exponent, half), (count,)) for index, count in pairs]
        self.cells.add(interval.counts._replace(packed=0, blocks=blocks))
        self._range = moved

    def scale(self) -> Scale:
        """The values of the cells."""
        layout = self._first.layout
        if not layout.decimal:
            return scale_of(layout)
        if self._intervals == 1:
            return scale_of(layout, math.frexp(self._first.ratio)[1])
        return scale_of(layout, self._range.exponent)

    def buckets(self) -> int | None:
        """Of HdrHistogram's sum, which has the range of the first histogram and grows for higher values; None: unknown."""
        if self._first.layout.decimal:
            return None if self._range is None else self._range.buckets
        half = half_of(self._first.layout.digits)
        top = max((cells[-1] for cells, _ in self.cells.runs() if cells), default=0)
        return max((self._first.cells >> half) - 1, top >> half, 1)

    def distribution(self) -> Distribution:
        """Its figures; HdrHistogram 2.1.0 and older, which wrote V0 and V1, rounded the rank of a percentile."""
        return distribution(self.cells, self.scale(), nearest=self._version < 2)


def _pairs(interval: Interval) -> Iterator[tuple[int, int]]:
    cells = Cells(Space())
    cells.add(interval.counts)
    for indexes, counts in cells.runs():
        yield from zip(indexes, counts)


def _cell(index: int, exponent: int, half: int) -> int:
    """The cell of decimal values: counted from the exponent 0, so that it does not depend on the ratio."""
    if not index:
        return ZERO
    lower = max(half + 1 - index.bit_length(), 0)  # below the half of the first power of two: a cell of fewer digits
    return (exponent - lower << half) + (index << lower)


class Total:
    """A series; `tag` is None for what was merged, too. Its intervals have the layout of the first one."""

    def __init__(self, first: Interval, tag: str | None, space: Space, by_s: float | None, *, merged: bool) -> None:
        self.layout = first.payload.layout
        self.tag, self._by_s, self._merged = tag, by_s, merged
        self._by_us = max(round((by_s or 0.0) * _US), 1)
        self._part = Part(first, space)
        self.files: dict[str, None] = {}
        self.tags: dict[str | None, None] = {}
        self._intervals = 0
        self._dated = first.dated
        self._begin_s, self._end_s = math.inf, -math.inf
        self._covered_to_s = -math.inf
        self._last: dict[tuple[str, str | None], float] = {}
        self._open: dict[int, Part] = {}
        self._rows = Rows(decimal=self.layout.decimal)

    def add(self, interval: Interval) -> None:
        """Count it. Raises Full; then it was not counted. Raises UsageError for too many periods."""
        self._part.add(interval)
        self._intervals += 1
        if len(self.files) < _MOST_NAMES:
            self.files[interval.file] = None
        if len(self.tags) < _MOST_NAMES:
            self.tags[interval.tag] = None
        covered_s = self._covered_s(interval) if self._merged else interval.length_s
        self._part.covered_s += covered_s
        if interval.dated and not self._dated:
            self._dated, self._begin_s, self._end_s = True, math.inf, -math.inf
        if interval.dated == self._dated:
            self._begin_s = min(self._begin_s, interval.begin_s)
            self._end_s = max(self._end_s, interval.begin_s + interval.length_s)
        if self._by_s is not None:
            number = round(interval.begin_s * _US) // self._by_us  # 0.3 s is the end of the third 0.1 s
            self._add_to_period(interval, number, covered_s)

    def _covered_s(self, interval: Interval) -> float:
        """What it adds to the time that intervals of several logs or tags cover together."""
        source = (interval.file, interval.tag)
        if interval.begin_s < self._last.get(source, -math.inf):
            self._covered_to_s = interval.begin_s  # a log without dates begins anew
        if source in self._last or len(self._last) < _MOST_NAMES:
            self._last[source] = interval.begin_s
        end_s = interval.begin_s + interval.length_s
        covered_s = max(end_s - max(interval.begin_s, self._covered_to_s), 0.0)
        self._covered_to_s = max(self._covered_to_s, end_s)
        return covered_s

    def _add_to_period(self, interval: Interval, number: int, covered_s: float) -> None:
        period = self._open.get(number)
        if period is None:
            if len(self._open) >= (_OPEN_MERGED if self._merged else _OPEN):
                self._close(min(self._open))
            period = self._open[number] = Part(interval, Space())
        try:
            period.add(interval)
        except Full:
            raise UsageError(f"a period of {self._by_s:g} s has too many counts to add; give a shorter --by") from None
        period.covered_s += covered_s

    def _close(self, number: int) -> None:
        if len(self._rows) >= _MOST_PERIODS:
            raise UsageError(f"more than {_MOST_PERIODS:,} periods of {self._by_s:g} s; give a longer --by")
        part = self._open.pop(number)
        self._rows.append(Period(number * self._by_us / _US, part.covered_s, part.distribution()))

    def series(self) -> Series:
        """What was added so far. No interval can be added afterwards."""
        for number in sorted(self._open):
            self._close(number)
        part, values = self._part, self._part.distribution()
        per_s = values.total / part.covered_s if part.covered_s > 0 else None
        return Series(
            tuple(self.files), self.tag, self.layout.digits, self._intervals, self._dated, self._begin_s, self._end_s,
            part.covered_s, per_s, values, Curve(part.cells, part.scale()), self._rows,
            buckets=part.buckets(),
        )  # fmt: skip
