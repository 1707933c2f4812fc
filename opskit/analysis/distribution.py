"""Exact percentiles of any number of values in a fixed amount of memory; a scratch file has the rest.

Values are kept in sorted runs. A run that is full goes to the scratch file, and only every 1,024th of its values stays here:
enough to know which block of each run can hold the wanted rank. No rank is ever estimated.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from math import ceil
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

RUN_VALUES = 1 << 15
_BLOCK_VALUES = 1 << 10
_VALUE_BYTES = 8


class Scratch:
    """The file for full runs; made when the first one is full. Where it cannot be written, runs stay in memory."""

    def __init__(self, make: Callable[[], BinaryIO]) -> None:
        self._make = make
        self._file: BinaryIO | None = None
        self._end = 0
        self._usable = True

    def put(self, values: array[float]) -> int | None:
        """Append; the offset in bytes, None where that was not possible (no space, no temporary directory)."""
        if not self._usable:
            return None
        try:
            if self._file is None:
                self._file = self._make()
            self._file.seek(self._end)
            self._usable = self._file.write(values.tobytes()) == len(values) * _VALUE_BYTES
        except OSError:
            self._usable = False
        if not self._usable:
            return None
        offset, self._end = self._end, self._end + len(values) * _VALUE_BYTES
        return offset

    def get(self, offset: int, count: int) -> array[float]:
        """Read values back."""
        assert self._file is not None  # noqa: S101  (an offset came from put)
        self._file.seek(offset)
        values = array("d")
        values.frombytes(self._file.read(count * _VALUE_BYTES))
        return values


class _Run:
    """A sorted run: in memory, or in the scratch file with every 1,024th value here."""

    __slots__ = ("count", "index", "offset", "scratch", "values")

    def __init__(self, values: array[float], scratch: Scratch | None) -> None:
        self.count = len(values)
        self.index = values[::_BLOCK_VALUES]
        self.scratch = scratch
        self.offset = scratch.put(values) if scratch is not None else None
        self.values = values if self.offset is None else None

    def below(self, value: float, find: Callable[[Sequence[float], float], int]) -> int:
        """How many are below the value (bisect_left), or not above it (bisect_right)."""
        block = find(self.index, value) - 1
        if block < 0:
            return 0
        start = block * _BLOCK_VALUES
        return start + find(self.part(start, start + _BLOCK_VALUES), value)

    def part(self, start: int, end: int) -> array[float]:
        """The values of these ranks."""
        end = min(end, self.count)
        if self.values is not None:
            return self.values[start:end]
        assert self.scratch is not None and self.offset is not None  # noqa: S101, PT018
        return self.scratch.get(self.offset + start * _VALUE_BYTES, end - start)


class Distribution:
    """Values that come in any order. `count`, `total` and `maximum` (None without a value) are known at any time."""

    __slots__ = ("_fresh", "_runs", "_scratch", "count", "maximum", "total")

    def __init__(self, scratch: Scratch) -> None:
        self.count, self.total = 0, 0.0
        self.maximum: float | None = None
        self._scratch = scratch
        self._fresh: list[float] = []
        self._runs: list[_Run] = []

    def extend(self, values: Sequence[float]) -> None:
        """Take values in. Raises TypeError, and takes none, where one of them is None."""
        if not values:
            return
        self.total += sum(values)
        self.count += len(values)
        highest = max(values)
        self.maximum = highest if self.maximum is None else max(self.maximum, highest)
        self._fresh += values
        if len(self._fresh) >= RUN_VALUES:
            self._fresh.sort()
            self._runs.append(_Run(array("d", self._fresh), self._scratch))
            self._fresh = []

    def runs(self) -> Iterator[_Run]:
        """All values, as sorted runs."""
        yield from self._runs
        if self._fresh:
            self._fresh.sort()
            yield _Run(array("d", self._fresh), None)


def percentiles(distributions: Sequence[Distribution], percents: Sequence[float]) -> list[float | None]:
    """The percentiles of all values of these distributions together, by nearest rank: each is a value that occurred.

    The p-th percentile is the smallest value that at least p per cent of the values do not exceed. None without a value.
    """
    runs = [run for distribution in distributions for run in distribution.runs()]
    count = sum(run.count for run in runs)
    if not count:
        return [None] * len(percents)
    candidates = sorted({value for run in runs for value in run.index})
    ranks = [max(ceil(count * percent / 100 - 1e-9), 1) - 1 for percent in percents]
    return [_at_rank(runs, candidates, rank) for rank in ranks]


def _at_rank(runs: Sequence[_Run], candidates: Sequence[float], rank: int) -> float:
    """The value with `rank` values before it."""
    low, high = 0, len(candidates) - 1  # the last candidate with at most `rank` values below it
    while low < high:
        middle = (low + high + 1) // 2
        if sum(run.below(candidates[middle], bisect_left) for run in runs) <= rank:
            low = middle
        else:
            high = middle - 1
    here = candidates[low]
    upto = [run.below(here, bisect_right) for run in runs]
    if rank < sum(upto):
        return here
    # Between two neighbouring candidates no run has more than a block.
    rest = sorted(
        value
        for run, start in zip(runs, upto)
        for value in run.part(start, start + _BLOCK_VALUES)
        if low + 1 == len(candidates) or value < candidates[low + 1]
    )
    return rest[rank - sum(upto)]
