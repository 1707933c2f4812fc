"""The range that a DoubleHistogram has after others were added to it: its highest value of a cell depends on that.

It begins far up and is moved or made wider by the values, in their order. Source: autoAdjustRangeForValueSlowPath in
DoubleHistogram.java, shiftValuesLeft and shiftValuesRight in AbstractHistogram.java.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from opskit.jvm.logs.hdr.codec import BadHistogram, cells_of, half_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.logs.hdr.record import Payload

_FIRST_EXPONENT = 800
_MOST_SHIFT = 50
_MOST_STEPS = 4000  # exponents of a double


class Range:
    """The range of decimal values that an accumulated DoubleHistogram covers. `payload`: the first that is added."""

    def __init__(self, payload: Payload) -> None:
        self._half = half_of(payload.layout.digits)
        self._span = payload.span
        inner = 1 << payload.span.bit_length() + 1
        self._lowest = math.ldexp(payload.layout.scale, _FIRST_EXPONENT + 1)
        self._limit = self._lowest * inner
        self._highest_integer = (inner << self._half) - 1
        self._digits = payload.layout.digits
        self._scale = payload.layout.scale
        self._least: float | None = None  # of the values other than 0
        self._most: float | None = None

    @property
    def exponent(self) -> int:
        """The ratio of an integer to a value is the layout's scale times 2 to this."""
        return math.frexp(self._lowest)[1] - self._half

    @property
    def buckets(self) -> int:
        """Of the integer histogram."""
        return (self._cells() >> self._half) - 1

    def add(self, values: Sequence[float]) -> None:
        """Values of cells in ascending order, without 0. Raises BadHistogram where they do not fit one histogram."""
        if values and self._lowest <= values[0] and values[-1] < self._limit:
            values = values[:: max(len(values) - 1, 1)]  # nothing moves
        for value in values:
            for _ in range(_MOST_STEPS):
                if value < self._lowest:
                    self._down(_magnitude(self._lowest / value, self._span))
                elif value >= self._limit:
                    self._up(_magnitude((value + math.ulp(value)) / self._limit, self._span))
                else:
                    break
            self._least = value if self._least is None else min(self._least, value)
            self._most = value if self._most is None else max(self._most, value)

    def _index(self, value: float) -> int:
        """The index of a value's cell."""
        integer = int(value / self._lowest * (1 << self._half))
        bucket = max(integer.bit_length() - self._half - 1, 0)
        return (bucket << self._half) + (integer >> bucket)

    def _down(self, shift: int) -> None:
        """Cover lower values."""
        if self._most is not None and self._index(self._most) >= self._cells() - (shift << self._half):
            self._widen(shift)
        else:
            self._limit = math.ldexp(self._limit, -shift)
        self._lowest = math.ldexp(self._lowest, -shift)

    def _up(self, shift: int) -> None:
        """Cover higher values."""
        if self._least is not None and self._index(self._least) < (shift << self._half) + (1 << self._half):
            self._widen(shift)
        else:
            self._lowest = math.ldexp(self._lowest, shift)
        self._limit = math.ldexp(self._limit, shift)

    def _cells(self) -> int:
        return cells_of(self._digits, 1, self._highest_integer)

    def _widen(self, shift: int) -> None:
        magnitude = shift + self._highest_integer.bit_length()
        if magnitude > 63:
            raise BadHistogram("the values are too far apart for one histogram")
        self._highest_integer = (1 << magnitude) - 1
        self._span <<= shift


def _magnitude(ratio: float, span: int) -> int:
    """How many powers of two to move by for a value that is outside by this ratio."""
    number = ratio if ratio > 2.0**_MOST_SHIFT else math.ceil(ratio) - 1.0
    if number > span:
        return int(math.log(span) / math.log(2))
    return _MOST_SHIFT if number > 2.0**_MOST_SHIFT else int(number).bit_length()
