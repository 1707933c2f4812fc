r"""Read what load generators print of a histogram: percentiles without the counts, which can be shown but not added.

wrk2 with --latency (values in ms), once for each histogram:

      Latency Distribution (HdrHistogram - Recorded Latency)
     50.000%    6.67ms
     99.999%   12.50ms

      Detailed Percentile spectrum:
           Value   Percentile   TotalCount 1/(1-Percentile)

           0.921     0.000000            1         1.00
          12.503     1.000000        39500          inf
    #[Mean    =        6.602, StdDeviation   =        1.919]
    #[Max     =       12.496, Total count    =        39500]

HistogramLogProcessor prints the same table, in a unit of the user's choice; `opskit hdr -f hgrm` prints several, each after a line
`#[Tag = READ-rt]`. cassandra-stress, at its end, in ms:

    Latency mean              :    0.8 ms [READ: 0.7 ms, WRITE: 0.9 ms]
    Latency 99.9th percentile :   12.1 ms [READ: 11.0 ms, WRITE: 12.2 ms]
    Total partitions          :  1,000,000 [READ: 500,100, WRITE: 499,900]
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.quantities import decimal, integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST_POINTS = 100_000
_MOST_NAMES = 100
_LONGEST_BYTES = 1000  # of a line
_SPECTRUM, _WRK2, _TAG = b"1/(1-Percentile)", b"Latency Distribution (HdrHistogram", b"#[Tag = "
_STRESS = (b"Stress Settings", b"Latency median", b"type       total ops", b"type,      total ops")
_TITLE = re.compile(rb"Latency Distribution \(HdrHistogram - ([A-Za-z]{1,40}) Latency")
_AMOUNT = re.compile(rb"([0-9]{1,12}\.[0-9]{1,9})(us|ms|s|m|h)")
_PERCENTILE = re.compile(r"([0-9]{1,2}(?:\.[0-9]{1,9})?)th percentile")
_OF_ONE = re.compile(r"([A-Za-z_-]{1,40}): {0,9}([0-9.,]{1,30})")
_TO_MS = {b"us": 1e-3, b"ms": 1.0, b"s": 1e3, b"m": 6e4, b"h": 3.6e6}


class Spectrum(NamedTuple):
    """A printed histogram. `points`: (value, share of all values from 0 to 1, how many values), ascending.

    `tool`: wrk2, cassandra-stress or hgrm; `name`: what it calls this one ("Uncorrected", "WRITE"); `unit`: of the values, None where
    it is not said. `percents`: (per cent, value), which the tool took from the histogram itself.
    """

    file: str
    number: int
    tool: str
    name: str | None
    unit: str | None
    total: int
    most: float | None
    mean: float | None
    deviation: float | None
    points: tuple[tuple[float, float, int], ...] = ()
    percents: tuple[tuple[float, float], ...] = ()
    seconds: float | None = None


def looks_printed(head: bytes) -> bool:
    """Whether a file is the output of a load generator rather than a log."""
    return _SPECTRUM in head or _WRK2 in head or any(mark in head for mark in _STRESS)


class Printed:
    """A reader of one such output. `lines` counts all lines so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines = 0
        self._title: str | None = None
        self._tool = "hgrm"
        self._points: list[tuple[float, float, int]] | None = None
        self._percents: list[tuple[float, float]] = []
        self._feet: dict[str, float] = {}
        self._stress: dict[str | None, dict[str, float]] = {}
        self._seconds: float | None = None

    def read(self, lines: Iterable[bytes | None]) -> Iterator[Spectrum]:
        """The histograms of an output that comes line by line."""
        for line in lines:
            self.lines += 1
            if line is None or len(line) > _LONGEST_BYTES:
                continue
            if found := _TITLE.search(line):
                self._tool, self._title, self._percents = "wrk2", found[1].decode("ascii"), []
            elif line.startswith(_TAG):
                self._title = line.strip()[len(_TAG) : -1].decode("utf-8", "surrogateescape")
            elif _SPECTRUM in line and b"Value" in line:
                self._points, self._feet = [], {}
            elif self._points is not None:
                self._point(line)
                if "Total count" in self._feet:
                    yield self._spectrum(self._points)
                    self._points = None
            elif self._tool == "wrk2":
                self._percent(line)
            else:
                self._summary(line.decode("utf-8", "replace"))
        yield from self._summaries()

    def _point(self, line: bytes) -> None:
        words = line.split()
        if line.startswith(b"#["):
            for each in line.strip().strip(b"#[]").split(b","):
                name, _, number = each.partition(b"=")
                if (value := decimal(number.strip())) is not None:
                    self._feet[name.strip().decode("ascii", "replace")] = value
        elif self._points is not None and len(words) in (3, 4) and len(self._points) < _MOST_POINTS:
            value, share, total = decimal(words[0]), decimal(words[1]), integer(words[2])
            if value is not None and share is not None and share <= 1 and total is not None:
                self._points.append((value, share, total))

    def _percent(self, line: bytes) -> None:
        words = line.split()
        if len(words) == 2 and words[0].endswith(b"%") and (found := _AMOUNT.fullmatch(words[1])):
            percent, value = decimal(words[0][:-1]), decimal(found[1])
            if percent is not None and value is not None and percent <= 100 and len(self._percents) < _MOST_NAMES:
                self._percents.append((percent, value * _TO_MS[found[2]]))

    def _spectrum(self, points: list[tuple[float, float, int]]) -> Spectrum:
        feet = self._feet
        return Spectrum(
            self.name, self.lines, self._tool, self._title, "ms" if self._tool == "wrk2" else None,
            round(feet["Total count"]), feet.get("Max"), feet.get("Mean"), feet.get("StdDeviation"), tuple(points), tuple(self._percents),
        )  # fmt: skip

    def _summary(self, line: str) -> None:
        """A line of the results of cassandra-stress."""
        name, colon, rest = line.partition(":")
        name = name.strip().lower()
        if not colon or not name.startswith(("latency ", "total ")):
            return
        if name == "total operation time":
            parts = [integer(part) for part in rest.strip().split(":")]
            if len(parts) == 3 and None not in parts:
                self._seconds = sum((part or 0) * unit for part, unit in zip(parts, (3600.0, 60.0, 1.0)))
            return
        whole, _, each = rest.partition("[")
        values = [(None, whole.split()[0])] if whole.split() else []
        for operation, number in [*values, *_OF_ONE.findall(each)]:
            value = decimal(number.rstrip(",").replace(",", ""))
            if value is not None and len(self._stress) < _MOST_NAMES:
                said = self._stress.setdefault(operation, {})
                if len(said) < _MOST_NAMES:
                    said[name] = value

    def _summaries(self) -> Iterator[Spectrum]:
        """What cassandra-stress says of all operations, or of each kind where there are several."""
        kinds = [kind for kind in self._stress if kind is not None]
        all_kinds: list[str | None] = [None] if self._stress else []
        for kind in kinds if len(kinds) > 1 else all_kinds:
            said = self._stress.get(kind, {})
            if "latency median" not in said:
                continue
            percents = [(50.0, said["latency median"])]
            for name, value in said.items():
                found = _PERCENTILE.search(name)
                if found and (percent := decimal(found[1])) is not None:
                    percents.append((percent, value))
            total = said.get("total partitions", said.get("total operations", 0.0))
            yield Spectrum(
                self.name, self.lines, "cassandra-stress", kind or (kinds[0] if kinds else None), "ms", round(total),
                said.get("latency max"), said.get("latency mean"), None, (), tuple(sorted(percents)), self._seconds,
            )  # fmt: skip
