"""Read a class histogram line by line: log prefixes, missing rows and damage. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.jvm.dumps.class_names import to_internal
from opskit.jvm.dumps.histogram import (
    HEADER,
    NO_END,
    NO_TOTAL,
    TOTAL,
    Counts,
    Table,
    is_torn_row,
    printed_counts,
    sum_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

# Compiled where needed: that takes longer than reading a small file. A name is never only a number.
_COUNTS_AND_NAME = r"\s+(\d{1,19})\s+(\d{1,19})\s+(?!\d+(?:\s|$))(\S.*)"
_ROW = r"\s*([1-9]\d{0,8}):" + _COUNTS_AND_NAME
_OPENJ9_ROW = r"\s*([1-9]\d{0,8})" + _COUNTS_AND_NAME
_DIGITS = r"[0-9]+"
_NUMBERED = r"\d{1,9}:"
_LONGEST_PREFIX = 1000  # a line of syslog has at most 1,024 bytes


class RowReader:
    """A reader of one table, line by line, without the prefix that a log put before each line."""

    def __init__(self, source: str, number: int, dialect: str, prefix: str) -> None:
        self.source, self.number, self.dialect = source, number, dialect
        self.pattern = re.compile(_OPENJ9_ROW if dialect == "openj9" else _ROW, re.ASCII)
        self.prefix = _shape(prefix)
        self.rows: dict[str, tuple[int, int]] = {}
        self.modules: dict[str, str] = {}
        self.sizes: dict[int, int] = {}  # of each row, by its number, in the order of the text
        self.smallest = 1 << 63
        self.elided = self.torn = self.unended = False

    def read(self, text: str, position: int) -> Table:
        """Read until the Total, the next histogram, or the end."""
        for start, end in _line_ends(text, position):
            line = text[start:end]
            if header := HEADER.search(line):
                self.torn = is_torn_row(self._body(line[: header.start()]))
                return self._close(start)
            body = self._body(line)
            if total := TOTAL.fullmatch(body):
                return self._close(min(end + 1, len(text)), line, printed_counts(total))
            if row := self._row(body):
                number, instances, size = map(int, row.groups()[:3])  # at most 19 ASCII digits each
                # The largest row is first: a row 1 below a smaller one begins a histogram without a header.
                if number == 1 and 1 in self.sizes and size > self.smallest:
                    return self._close(start)
                self._add(number, instances, size, row[4], line)
                self.unended = end == len(text)
            else:
                self._pass_over(body, line, is_last=end == len(text))
            self.number += 1
        return self._close(len(text))

    def _body(self, line: str) -> str:
        found = self.prefix.match(line) if self.prefix else None
        return line[found.end() :] if found else line

    def _row(self, body: str) -> re.Match[str] | None:
        row = self.pattern.fullmatch(body)
        return None if row and self.dialect == "openj9" and " " in row[4].rstrip() else row

    def _add(self, number: int, instances: int, size: int, name: str, line: str) -> None:
        if number in self.sizes:
            raise self._bad(f"row {number} occurs twice in one histogram", line)
        if size < instances:
            raise self._bad(f"{instances} instances cannot take {size} bytes", line)
        self.sizes[number] = size
        self.smallest = min(self.smallest, size)
        name, module = _split_module(name.rstrip())
        if module:
            self.modules[name] = module
        elif self.dialect == "agent":
            name = to_internal(name)
        before = self.rows.get(name, (0, 0))
        self.rows[name] = (before[0] + instances, before[1] + size)

    def _pass_over(self, body: str, line: str, *, is_last: bool) -> None:
        """A line that is not a row: damage, an ellipsis, or another line of the log."""
        words = body.split()
        if not words or body.strip().startswith("---"):
            return
        if set(words[0]) <= set(".…[](<>") and len(words) < 8:
            self.elided = True
        elif words[0].startswith("Total") and len(words) <= 4:
            raise self._bad("not a Total line of a histogram", line)
        elif _is_nearly_a_row(body):
            if not is_last:
                raise self._bad("not a row of a histogram (number: instances bytes class)", line)
            self.torn = True

    def _close(self, end: int, line: str = "", total: Counts | None = None) -> Table:
        numbers = self.sizes.keys()
        last = max(numbers, default=0)
        missing = last - len(numbers)
        summed = sum_rows(self.rows)
        reasons = []
        if missing:
            first = next(number for number in range(1, last + 1) if number not in numbers)
            reasons.append(f"{missing} of {last} rows are missing, from row {first} on")
        if total is None:
            reasons.append("its last line is cut off" if self.torn else NO_TOTAL)
        elif missing:
            if summed.instances > total.instances or summed.bytes > total.bytes:
                problem = f"the rows alone have {summed.instances} instances and {summed.bytes} bytes"
                raise self._bad(f"{problem}, more than this Total", line)
        elif summed != total and not self._overflowed(summed, total):
            if last and not self.elided:
                problem = f"the {last} rows add up to {summed.instances} instances and {summed.bytes} bytes"
                raise self._bad(f"{problem}, not to this Total", line)
            reasons.append("rows are left out before the Total")
        return Table(self.rows, self.modules, total, "; ".join(reasons) or None, self._doubts() if reasons else (), end)

    def _overflowed(self, summed: Counts, total: Counts) -> bool:
        """The serviceability agent counts in 32 bits."""
        return self.dialect == "agent" and all((ours - theirs) % 2**32 == 0 for ours, theirs in zip(summed, total))

    def _doubts(self) -> tuple[str, ...]:
        """JVMs print the largest class first: without a Total, only that order can be checked."""
        doubts = (NO_END,) if self.unended else ()
        rows = sorted(self.sizes.items())
        for (_, earlier), (number, later) in zip(rows, rows[1:]):
            if later > earlier:
                return (f"row {number} has more bytes than the row before it: one of the two may be damaged", *doubts)
        return doubts

    def _bad(self, problem: str, line: str) -> BadInput:
        return BadInput(self.source, problem, self.number, line.strip())


def _is_nearly_a_row(text: str) -> bool:
    """Whether this is a damaged row: a number with a colon, or three short words with a digit each, then a name."""
    words = text.split(None, 5)
    if words and re.match(_NUMBERED, words[0], re.ASCII):
        return True
    if len(words) not in (4, 5) or len(words[0]) > 9:
        return False
    if any(":" in word or "-" in word or re.search(_DIGITS, word) is None for word in words[1:3]):
        return False
    return len(words) == 4 or (len(words[4]) > 2 and words[4].startswith("(") and words[4].endswith(")"))


def _line_ends(text: str, position: int) -> Iterator[tuple[int, int]]:
    while position < len(text):
        end = text.find("\n", position)
        yield position, len(text) if end < 0 else end
        position = len(text) if end < 0 else end + 1


def _shape(prefix: str) -> re.Pattern[str] | None:
    """A pattern for the log prefix of each line: that of the header, with any digits."""
    if not prefix.strip() or len(prefix) > _LONGEST_PREFIX:
        return None
    words = re.split(r"(\d+|\s+)", prefix.rstrip(), flags=re.ASCII)
    words[1::2] = [r"\s+" if word.isspace() else r"\d+" for word in words[1::2]]
    words[::2] = map(re.escape, words[::2])
    return re.compile("".join(words), re.ASCII)


def _split_module(name: str) -> tuple[str, str]:
    if name.endswith(")") and " (" in name:
        name, _, module = name[:-1].rpartition(" (")
        return name.rstrip(), module
    return name, ""
