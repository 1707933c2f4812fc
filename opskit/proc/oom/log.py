"""A whole log, in chunks of bytes: lines of text, of JSON, or the journal's export format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.oom import parser, signs
from opskit.proc.oom.journal import ExportReader, read_json
from opskit.proc.oom.lines import Line, When, read_line, when_of
from opskit.proc.oom.parser import OomParser
from opskit.proc.oom.signs import Sign, Signs
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.proc.oom.records import Kill

BINARY_JOURNAL = b"LPKSHHRH"
_EXPORT = (b"__CURSOR=", b"__REALTIME_TIMESTAMP=", b"__MONOTONIC_TIMESTAMP=")
NEEDLES = tuple(needle.encode() for needle in (*parser.NEEDLES, *signs.NEEDLES))
# Each needle has one of these: a chunk without them is skipped.
COARSE = (
    b"oom-kill", b"Kill", b"OOM", b"oom.group", b"Kernel panic - ", b"killable", b" due to memory ", b"sending SIG", b"9/KILL", b"e 137", b"e=137",
    b"status 137", b"status=137", b"xitCode", b"insufficient memory for", b"Native memory alloc", b"java.lang.OutOfM",
)  # fmt: skip
_BYTES_IN_JSON = (b'"MESSAGE":[', b'"MESSAGE" : [', b'"MESSAGE": [')
_LONGEST_LINE = 1 << 14
_LONGEST_REST = 1 << 20


class OomLog(NamedTuple):
    """What a log tells: victims, signs of user space, its lines, and the stamps of the first and last line that has one.

    `more`: kills beyond the most that are kept.
    """

    kills: Sequence[Kill]
    signs: Sequence[Sign]
    lines: int
    first: When
    last: When
    more: int = 0


class _Reader:
    def __init__(self, page_bytes: int, now_s: float | None, first_lines: int) -> None:
        self._parser, self._signs, self._now_s = OomParser(page_bytes, now_s, first_lines), Signs(now_s), now_s
        self._rest = b""
        self._export: ExportReader | None = None
        self._first: When | None = None
        self._tail = b""
        self._last_read: Line | None = None
        self._lines = 0

    def feed(self, chunk: bytes) -> None:
        data = self._rest + chunk
        end = data.rfind(b"\n") + 1
        self._rest = data[end:]
        if len(self._rest) > _LONGEST_REST:  # a line is never that long: its end is not waited for
            self._rest = self._rest[:_LONGEST_LINE]
        if end:
            self._take(data[:end])

    def result(self) -> OomLog:
        if self._rest:
            self._take(self._rest + b"\n")
        for line in self._export.end() if self._export else ():
            self._give(line)
        last = self._last_read if self._export else self._last_stamped()
        return OomLog(
            self._parser.kills(), self._signs.found(), self._lines, self._first or When(),
            self._when(last) if last else When(), self._parser.more,
        )  # fmt: skip

    def _last_stamped(self) -> Line | None:
        """The last line with a stamp: the log may end in the middle of a message of several lines."""
        lines = (line for raw in reversed(self._tail.split(b"\n")) for line in self._read(raw))
        return next((line for line in lines if line.date or line.uptime), None)

    def _take(self, body: bytes) -> None:
        if not self._lines and self._export is None and body.startswith(_EXPORT):
            self._export = ExportReader()
        count = body.count(b"\n")
        self._lines += count
        if self._export is not None:
            for raw in body[:-1].split(b"\n"):
                for line in self._export.take(raw):
                    self._first = self._first or self._when(line)
                    self._last_read = line
                    self._give(line)
            return
        if self._first is None or not self._first.text:
            self._first = self._when(self._read(body.partition(b"\n")[0])[0])
        self._tail = body[-_LONGEST_LINE:]
        has_arrays = any(each in body for each in _BYTES_IN_JSON)
        if not self._parser.is_reading and not has_arrays and not any(needle in body for needle in COARSE):
            self._parser.skip(count)
            return
        for raw in body[:-1].split(b"\n"):
            self._line(raw, has_arrays=has_arrays)

    def _line(self, raw: bytes, *, has_arrays: bool) -> None:
        if self._parser.is_reading or any(needle in raw for needle in NEEDLES) or (has_arrays and b'"MESSAGE"' in raw):
            for line in self._read(raw):
                self._give(line)
        else:
            self._parser.skip(1)

    def _give(self, line: Line) -> None:
        self._parser.take(line)
        if any(needle in line.text for needle in signs.NEEDLES):
            self._signs.take(line)

    def _read(self, raw: bytes) -> list[Line]:
        is_json = raw.startswith(b"{")
        text = raw[: _LONGEST_REST if is_json else _LONGEST_LINE].rstrip(b"\r").decode("utf-8", "surrogateescape")
        return (read_json(text) if is_json else None) or [read_line(text)]

    def _when(self, line: Line) -> When:
        return when_of(line.date, line.uptime, self._now_s)


def read_log(
    chunks: Iterable[bytes],
    page_bytes: int = 4096,
    now_s: float | None = None,
    first_lines: int = parser.FIRST_LINES,
) -> OomLog:
    """The kills and signs in a log. `now_s`, seconds since the epoch, gives dates without a year theirs.

    `first_lines`: in which a report without its beginning is looked for; 0: what is cut off is not needed.
    """
    reader = _Reader(page_bytes, now_s, first_lines)
    for chunk in chunks:
        reader.feed(chunk)
    return reader.result()
