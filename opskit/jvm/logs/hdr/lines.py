r"""Read the lines of HdrHistogram logs of all versions.

    #[Histogram log format version 1.3]
    #[BaseTime: 1700000000.000 (seconds since epoch)]
    #[StartTime: 1700000000.127 (seconds since epoch), Tue Nov 14 22:13:20 UTC 2023]
    "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
    0.127,1.007,2.769,HISTFAAAAEV42pNpmSzMwMC…
    Tag=read-rt,0.127,1.007,2.769,HISTFAAAAEV42pNpmSzMwMC…

The time of a line is added to BaseTime. Without one it is absolute, or (if it is more than a year before StartTime) counts from
StartTime. Source: HistogramLogWriter.java, HistogramLogReader.java.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.jvm.logs.hdr.codec import BadHistogram, parse_payload
from opskit.jvm.logs.hdr.counts import counts_of
from opskit.jvm.logs.hdr.record import Interval
from opskit.quantities import decimal
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONGEST_LINE_BYTES = 4 << 20
_YEAR_S = 365 * 86400.0
_PLACES = 6  # of seconds: 0.3 after a date is 0.3, not 0.2999999
_TIME = re.compile(rb"#\[(StartTime|BaseTime): ?(-?[0-9]{1,20}(?:\.[0-9]{1,20})?)(?![0-9.])")
_NUMBER = re.compile(rb"-?(?:[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][-+]?[0-9]{1,3})?|NaN|Infinity)")
_MOST_HEADER_LINES = 100
_LONGEST_HEADER_BYTES = _LONGEST_TAG_BYTES = 1000
_TAG = b"Tag="


class Bad(NamedTuple):
    """A line that cannot be used, and why. `cut`: it is the last one and has no end; it is still written."""

    number: int
    why: str
    cut: bool = False


class Log:
    """A reader of one log. `lines` counts all lines so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines = 0
        self._header: tuple[bytes, ...] = ()
        self._begun = False
        self._start_s: float | None = None
        self._base_s: float | None = None
        self._base_known = False  # the log says it

    def read(self, chunks: Iterable[bytes]) -> Iterator[Interval | Bad]:
        """The intervals of a log that comes in chunks of any size, and the lines that cannot be used."""
        for line in lines_of(chunks):
            self.lines += 1
            if line is None:
                yield Bad(self.lines, f"the line is longer than {LONGEST_LINE_BYTES >> 20} MiB")
            elif line[:1] in (b"#", b'"'):
                self._comment(line)
            elif line.strip():
                try:
                    yield self._interval(line)
                except BadHistogram as why:
                    yield Bad(self.lines, str(why), cut=not line.endswith(b"\n"))

    def _comment(self, line: bytes) -> None:
        found = _TIME.match(line)
        if found and (seconds := _seconds(found[2])) is not None:
            if found[1] == b"BaseTime":
                self._base_s, self._base_known = seconds, True
            else:
                self._start_s = seconds
                if not self._base_known:
                    self._base_s = None  # it is worked out anew
        if len(line) > _LONGEST_HEADER_BYTES or not line.endswith(b"\n"):
            return
        if not self._begun:
            if len(self._header) < _MOST_HEADER_LINES:
                self._header += (line,)
        elif (kind := _kind(line)) and line not in self._header:
            kept = [each for each in self._header if _kind(each) != kind]
            self._header = (*kept[: _MOST_HEADER_LINES - 1], line)

    def _interval(self, line: bytes) -> Interval:
        self._begun = True
        tag, rest = None, line
        if line.startswith(_TAG):
            name, _, rest = line[len(_TAG) :].partition(b",")
            if len(name) > _LONGEST_TAG_BYTES:
                raise BadHistogram(f"the tag has {len(name):,} bytes; at most {_LONGEST_TAG_BYTES:,} are read")
            tag = name.decode("utf-8", "surrogateescape")
        fields = rest.rstrip().split(b",", 3)
        if len(fields) < 4:
            raise BadHistogram(
                f"the line has {len(fields) - 1 + line.count(_TAG, 0, 4)} commas where a log has at least 3"
            )
        at_s, length_s = _seconds(fields[0].strip()), _seconds(fields[1].strip())
        if at_s is None or length_s is None or length_s < 0:
            which = "time" if at_s is None else "length"
            shown = fields[0 if at_s is None else 1].decode("utf-8", "replace")[:40]
            raise BadHistogram(f"the {which} of the interval is not a number of seconds: {shown!r}")
        if not _NUMBER.fullmatch(fields[2].strip()):
            shown = fields[2].decode("utf-8", "replace")[:40]
            raise BadHistogram(f"the highest value of the interval is not a number: {shown!r}")
        payload = parse_payload(fields[3].partition(b",")[0].strip())
        dated, begin_s, since_s = self._when(at_s)
        return Interval(
            self.name, self.lines, tag, dated, begin_s, since_s, length_s, decimal(fields[2].strip()), payload,
            counts_of(payload), line, self._header,
        )  # fmt: skip

    def _when(self, at_s: float) -> tuple[bool, float, float]:
        """Whether it has a date; seconds since the epoch or the log's start; seconds since the log's start."""
        if self._start_s is None:
            self._start_s = at_s + (self._base_s or 0.0)
        if self._base_s is None:
            self._base_s = self._start_s if at_s < self._start_s - _YEAR_S else 0.0
        begin_s = round(at_s + self._base_s, _PLACES)
        if begin_s >= _YEAR_S:
            return True, begin_s, round(begin_s - self._start_s, _PLACES)
        return False, at_s, at_s


def _kind(line: bytes) -> bytes | None:
    """What of the header the line says again."""
    if found := _TIME.match(line):
        return found[1]
    return b'"' if line.startswith(b'"') else None


def _seconds(text: bytes) -> float | None:
    if text[:1] == b"-":
        seconds = decimal(text[1:])
        return None if seconds is None else -seconds
    return decimal(text)


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    """Lines with their ends; None for one that is too long. The last one may have no end."""
    waiting: list[bytes] = []
    size, skipping = 0, False
    for chunk in chunks:
        pieces = chunk.splitlines(keepends=True) if b"\r" not in chunk else _split(chunk)
        for piece in pieces:
            ends = piece.endswith(b"\n")
            if size + len(piece) > LONGEST_LINE_BYTES:
                waiting, size, skipping = [], 0, True
            if not skipping:
                waiting.append(piece)
                size += len(piece)
            if ends:
                yield None if skipping else b"".join(waiting)
                waiting, size, skipping = [], 0, False
    if skipping:
        yield None
    elif waiting:
        yield b"".join(waiting)


def _split(chunk: bytes) -> list[bytes]:
    """bytes.splitlines() also ends lines at a lone carriage return."""
    *whole, rest = chunk.split(b"\n")
    return [line + b"\n" for line in whole] + [rest] * bool(rest)
