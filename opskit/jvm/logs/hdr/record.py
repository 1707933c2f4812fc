"""What a log of HdrHistogram has in a line: when, how long, which tag, and a histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.quantities import plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Layout(NamedTuple):
    """The cells of a histogram. Counts may be added where the layouts are equal: the same value is in the same cell then.

    `digits`: significant ones. `lowest`: the lowest discernible value. `decimal`: of a DoubleHistogram, whose cells are those of an
    integer histogram times a power of two times `scale`.
    """

    digits: int
    lowest: int
    decimal: bool = False
    scale: float = 0.5

    def __str__(self) -> str:
        """As messages name it: `3 digits`, `2 digits from 1000 up`, `3 digits, decimal values`."""
        from_up = f" from {self.lowest} up" if self.lowest > 1 else ""
        scaled = f" in steps of {self.scale * 2:.9g}" if self.scale != 0.5 else ""
        return f"{plural(self.digits, 'digit')}{from_up}{', decimal values' * self.decimal}{scaled}"


class Payload(NamedTuple):
    """An encoded histogram whose header and size were checked. `version`: 0, 1 or 2.

    `body`: the encoded counts; `word`: bytes of each, 0: ZigZag LEB128 with runs of zeros. `cells`: how many there are at most.
    `offset`: the first count belongs to this cell; after the last cell comes the first one. Of a DoubleHistogram: `ratio` of an
    integer to a value, `span` of the highest value to the lowest.
    """

    layout: Layout
    version: int
    word: int
    cells: int
    body: bytes
    offset: int = 0
    ratio: float = 1.0
    span: int = 2


class Counts(NamedTuple):
    """The counts of a histogram: as fields of an integer (`packed`, see counts.py; none is above `field`), or as blocks.

    `blocks`: (cell, counts from there on), ascending, can be gone through again. `total`: not less than all counts together.
    `top`: the highest cell with a count; -1 without any.
    """

    packed: int
    field: int
    blocks: Iterable[tuple[int, Sequence[int]]]
    total: int
    top: int


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
    counts: Counts
    line: bytes
    header: tuple[bytes, ...]
