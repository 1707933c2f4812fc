"""Find the class histograms of a text. Pure.

A plain, whole table is read by columns; any other one line by line, with log prefixes, missing rows and damage. Both
ways give the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.jvm.dumps.histogram import HEADER, Histogram, is_torn_row
from opskit.jvm.dumps.histogram_columns import line_after, read_columns
from opskit.jvm.logs.timestamps import Stamp, read_stamp
from opskit.jvm.progress import onwards

if TYPE_CHECKING:
    from collections.abc import Iterator

_BARE_ROW = re.compile(
    r"^[ \t]*[1-9]\d{0,8}:[ \t]+\d{1,19}[ \t]+\d{1,19}[ \t]+[\w$<\[]\S*(?:[ \t]+\(\S+\))?[ \t\r]*$",
    re.MULTILINE | re.ASCII,
)
# Compiled where needed: that takes longer than reading a small file.
_MOMENT = r"(?i)\((before|after) full gc\)(?! [\d.,]+ms)"  # with a duration the words end a histogram
_COLOURS = r"(?:\x1b\[[\d;]*[mK])+"  # around a line; within it they belong to a name
_CONTEXT_CHARACTERS = 600  # before a header, which may have the time and the pid


def parse_histograms(text: str, source: str) -> list[Histogram]:
    """Every histogram in a text, in its order.

    A header without rows and Total is left out. Raises BadInput (source, line, text) without any histogram, for a row
    or a Total that cannot be read, a repeated row, and whole tables whose rows do not add up to the Total.
    """
    text = _plain(text)
    tables = _Tables(text, source)
    found = list(tables)
    if tables.bare_line is not None:
        if not found:
            raise BadInput(source, "a histogram's header without a row or a Total; take it again", tables.bare_line)
        doubt = f"the header in line {tables.bare_line} has neither a row nor a Total, and is left out"
        found[-1] = found[-1]._replace(doubts=(*found[-1].doubts, doubt))
    if not found:
        from opskit.jvm.dumps.sniff import content_type

        raise BadInput(source, f"not a class histogram but {content_type(text)}; jmap -histo PID > FILE writes one")
    return found


def _plain(text: str) -> str:
    """The lines that the JVM wrote, without terminal colours and out of a log with one JSON object per line."""
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text:
        text = _without_colours(text)
    if text.lstrip()[:1] == "{":
        from opskit.jvm.dumps.plain_text import logged_as_json

        text = logged_as_json(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
    return text


def _without_colours(text: str) -> str:
    def outside(found: re.Match[str]) -> str:
        before, behind = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
        return "" if "\n" in (before or "\n", behind or "\n") else found[0]

    return re.sub(_COLOURS, outside, text)


class _Tables:
    """The histograms of a text, in order. Each part of the text is read once."""

    def __init__(self, text: str, source: str) -> None:
        self._text, self._source = text, source
        self._header = HEADER.search(text)  # the next one
        self._total = 0  # the position before the next Total line; -1: there is none
        self._position = 0
        self._line = 1  # at the position
        self.bare_line: int | None = None  # of the first header with neither a row nor a Total

    def __iter__(self) -> Iterator[Histogram]:
        while (start := self._next()) is not None:
            before = self._position
            self._go_to(start)
            histogram, end = self._read(start, before)
            self._go_to(onwards(start, end))
            if histogram.rows or histogram.total:
                yield histogram
            elif self.bare_line is None:
                self.bare_line = histogram.line

    def _go_to(self, position: int) -> None:
        self._line += self._text.count("\n", self._position, position)
        self._position = position

    def _next(self) -> int | None:
        """The position where the next table begins: its header, or its first row without one."""
        if self._header and self._header.start() < self._position:
            self._header = HEADER.search(self._text, self._position)
        header = self._header
        line_start = max(self._text.rfind("\n", self._position, header.start()) + 1, self._position) if header else None
        bare = _BARE_ROW.search(self._text, self._position, len(self._text) if line_start is None else line_start)
        if bare:
            return bare.start()
        return header.start() if header else None

    def _next_total(self, start: int) -> int:
        if 0 <= self._total < start:
            self._total = self._text.find("\nTotal ", start)
        return self._total

    def _read(self, start: int, before: int) -> tuple[Histogram, int]:
        """The table at `start`, and the position of the line after it. `before`: the end of the table before it."""
        text = self._text
        header = self._header if self._header and self._header.start() == start else None
        line_start = text.rfind("\n", 0, start) + 1
        prefix = text[line_start:start] if header else ""
        if is_torn_row(prefix):  # of the table before, cut within its name
            prefix = ""
        dialect = _dialect(header)
        found = None
        body_start = start
        if header:
            body_start = line_after(text, header.end())
            if dialect == "hotspot" and not prefix.strip():
                found = read_columns(text, body_start, self._next_total(body_start))
        if found is None:
            from opskit.jvm.dumps.histogram_rows import RowReader

            found = RowReader(self._source, self._line + bool(header), dialect, prefix).read(text, body_start)
        context = text[max(before, line_start - _CONTEXT_CHARACTERS) : line_start] + prefix[:_CONTEXT_CHARACTERS]
        moments = re.findall(_MOMENT, _behind_headers(context)) if context else []
        histogram = Histogram(
            self._source, self._line, dialect, bool(header and header["modules"]) or bool(found.modules), *found[:5],
            moment=f"{moments[-1].lower()} full gc" if moments else None,
            stamp=read_stamp(context) if context else Stamp(),
        )  # fmt: skip
        return histogram, found.end


def _behind_headers(context: str) -> str:
    """The part that does not belong to the table before it."""
    end = max((header.end() for header in HEADER.finditer(context)), default=0)
    return context[end:]


def _dialect(header: re.Match[str] | None) -> str:
    if header and header["columns"].startswith("object"):
        return "openj9"
    return "agent" if header and header["title"].startswith("Class") else "hotspot"
