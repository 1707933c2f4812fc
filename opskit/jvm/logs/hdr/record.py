"""What a log of HdrHistogram has in a line: when, how long, which tag, and a histogram."""

from __future__ import annotations

from opskit.records import NamedTuple


class Layout(NamedTuple):
    """The cells of a histogram. Counts may be added where the layouts are equal: the same value is in the same cell then.

    `digits`: significant ones. `lowest`: the lowest discernible value. `decimal`: of a DoubleHistogram; its cells are those
    of an integer histogram times a power of two.
    """

    digits: int
    lowest: int
    decimal: bool = False

    def __str__(self) -> str:
        """As messages name it: `3 digits`, `2 digits from 1000 up`, `3 digits, decimal values`."""
        from_up = f" from {self.lowest} up" if self.lowest > 1 else ""
        digits = f"{self.digits} digit{'s' * (self.digits != 1)}"
        return f"{digits}{from_up}{', decimal values' * self.decimal}"


class Payload(NamedTuple):
    """An encoded histogram whose header and size were checked. `version`: 0, 1 or 2; `ratio`: of an integer to a value.

    `body`: the encoded counts; `word`: bytes of each one, 0: ZigZag LEB128 with runs of zeros.
    """

    layout: Layout
    version: int
    ratio: float
    word: int
    cells: int
    body: bytes


class Interval(NamedTuple):
    """A line of a log.

    `begin_s`: seconds since the epoch, if `dated`; else since the log's start. `since_start_s`: since its StartTime, or its
    first interval where it has none. `most`: the column Interval_Max, by convention in ms. `line`: the whole line as it
    stands in the file, with its end. `header`: the lines before the file's first interval, and the last StartTime, BaseTime and
    legend of those that came later; the same object as long as nothing changes.
    """

    file: str
    number: int
    tag: str | None
    dated: bool
    begin_s: float
    since_start_s: float
    length_s: float
    most: float | None
    payload: Payload
    line: bytes
    header: tuple[bytes, ...]
