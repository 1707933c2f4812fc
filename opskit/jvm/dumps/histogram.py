"""Class histograms, as JVMs from JDK 5 to 25 print them, alone or inside a log.

     num     #instances         #bytes  class name (module)
    -------------------------------------------------------
       1:          7610         607736  [B (java.base@11.0.5)
       2:          7069         169656  java.lang.String (java.base@11.0.5)
       3:           250          12000  com.acme.Order
    Total         14929         789392

Sources: HotSpot's KlassInfoHisto (memory/heapInspection.cpp), which also writes into GC logs; ObjectHistogram of the
serviceability agent (`jhsdb jmap --histo`, `jmap -F`): tabs, `byte[]` for `[B`, `Total : `; OpenJ9's jmap: no colon
behind the row's number and no Total.

A plain, whole table is read column by column; whatever is not plain and whole is read line by line, which knows of log
prefixes, missing rows and damage. Both ways give the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import ge, itemgetter
from typing import TYPE_CHECKING, NamedTuple

from opskit.errors import BadInput
from opskit.jvm.dumps.class_names import to_internal
from opskit.jvm.dumps.sniff import looks_like
from opskit.jvm.logs.timestamps import Stamp, read_stamp
from opskit.jvm.progress import onwards

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class Counts(NamedTuple):
    """Objects, and the bytes they take themselves (what they refer to is not in it)."""

    instances: int
    bytes: int


@dataclass(frozen=True)
class Histogram:
    """One histogram.

    `rows` maps a class name to (instances, bytes), those of several loaders summed; `modules` a name to `MODULE@VERSION`
    where the class is in a named one. `line` is the header's, from 1. `total` is what the Total line says; None where there is none. `cut` says why the
    rows are not all the JVM printed; None where they are. `doubts` are oddities that prove nothing. `moment` is
    "before full gc" or "after full gc" where a GC log says so.
    """

    source: str
    line: int
    dialect: str
    has_modules: bool
    rows: Mapping[str, tuple[int, int]]
    modules: Mapping[str, str]
    total: Counts | None
    cut: str | None = None
    doubts: tuple[str, ...] = ()
    moment: str | None = None
    stamp: Stamp = field(default_factory=Stamp)


# Each pattern begins with a literal, which makes the search through megabytes of log a fast one.
_HEADER = re.compile(
    r"num[ \t]+(?P<columns>#instances[ \t]+#bytes|object count[ \t]+total size)[ \t]+"
    r"(?P<title>class name|Class description)[ \t]*(?P<modules>\(module\))?"
)
_TOTAL = re.compile(r"\s*Total(?: ?:)?\s+(\d{1,19})\s+(\d{1,19})\s*", re.ASCII)
_BARE_ROW = re.compile(
    r"^[ \t]*[1-9]\d{0,8}:[ \t]+\d{1,19}[ \t]+\d{1,19}[ \t]+[\w$<\[]\S*(?:[ \t]+\(\S+\))?[ \t\r]*$",
    re.MULTILINE | re.ASCII,
)
# Compiled only where they are needed: that takes longer than reading a small file. A name is never a number alone.
_COUNTS_AND_NAME = r"\s+(\d{1,19})\s+(\d{1,19})\s+(?!\d+(?:\s|$))(\S.*)"
_ROW = r"\s*([1-9]\d{0,8}):" + _COUNTS_AND_NAME
_OPENJ9_ROW = r"\s*([1-9]\d{0,8})" + _COUNTS_AND_NAME
_ROWS_BEGINNING = r"\s*[1-9]\d{0,8}:?\s+\d{1,19}\s+\d{1,19}\s+\S"
_DIGITS = r"[0-9]+"
_NUMBERED = r"\d{1,9}:"
_MOMENT = r"(?i)\((before|after) full gc\)(?! [\d.,]+ms)"  # with a duration the words end a histogram
_COLOURS = r"(?:\x1b\[[\d;]*[mK])+"  # around a line; within it is a name's own
_NO_TOTAL = "it has no Total line"
_NO_END = "its last line has no end: the name in it may be torn"
_TOO_MANY = 1 << 63  # bytes, or objects: HotSpot counts in 64 bits
_FIRST_CHUNK_CHARACTERS, _CHUNK_CHARACTERS = 1 << 9, 1 << 18
_LONGEST_PREFIX = 1000  # syslog's whole line had 1,024 bytes
_CONTEXT_CHARACTERS = 600  # the lines before a header that may say when, and of which JVM


def parse_histograms(text: str, source: str) -> list[Histogram]:
    """Every histogram in a text, in its order.

    A header without a row and a Total is left out. Raises BadInput (source, line, text) where no histogram is left, where a row
    or a Total cannot be read, where a row stands twice, and where all rows are there but do not add up to the Total.
    """
    text = _plain(text)
    tables = _Tables(text, source)
    found = list(tables)
    if tables.bare_line is not None:
        if not found:
            raise BadInput(source, "a histogram's header without a row or a Total; take it again", tables.bare_line)
        doubt = f"the header in line {tables.bare_line} has neither a row nor a Total, and is left out"
        found[-1] = replace(found[-1], doubts=(*found[-1].doubts, doubt))
    if not found:
        raise BadInput(source, f"this is no class histogram but {looks_like(text)}; jmap -histo PID > FILE writes one")
    return found


def _plain(text: str) -> str:
    """The lines that the JVM wrote: without a terminal's colours, and out of a log of one JSON object a line."""
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text:
        text = _without_colours(text)
    if text.lstrip()[:1] == "{":
        from opskit.jvm.dumps.text import logged_as_json

        text = logged_as_json(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
    return text


def _without_colours(text: str) -> str:
    def outside(found: re.Match[str]) -> str:
        at_edge = text[found.start() - 1 : found.start()] in ("", "\n") or text[found.end() : found.end() + 1] in (
            "",
            "\n",
        )
        return "" if at_edge else found[0]

    return re.sub(_COLOURS, outside, text)


class _Tables:
    """The histograms of a text, one after the other. Each part of the text is looked at once, and each table takes at least a line."""

    def __init__(self, text: str, source: str) -> None:
        self._text, self._source = text, source
        self._header = _HEADER.search(text)  # the first one that is not behind us
        self._total = 0  # the same of the line before a Total; -1: there is none
        self._position = 0
        self._line = 1  # at the position
        self.bare_line: int | None = None  # of the first header with neither a row nor a Total: no histogram

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
        """Where a table begins: at its header, or at its first row where it has no header."""
        if self._header and self._header.start() < self._position:
            self._header = _HEADER.search(self._text, self._position)
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
        """The table that begins there, and the position behind it, on another line. `before`: where the one before it ended."""
        text = self._text
        header = self._header if self._header and self._header.start() == start else None
        line_start = text.rfind("\n", 0, start) + 1
        prefix = text[line_start:start] if header else ""
        if _is_torn_row(prefix):  # of the table before, cut within its name
            prefix = ""
        dialect = _dialect(header)
        found = None
        body_start = start
        if header:
            body_start = _line_after(text, header.end())
            if dialect == "hotspot" and not prefix.strip():
                found = _read_columns(text, body_start, self._next_total(body_start))
        if found is None:
            found = _Lines(self._source, self._line + bool(header), dialect, prefix).read(text, body_start)
        context = text[max(before, line_start - _CONTEXT_CHARACTERS) : line_start] + prefix[:_CONTEXT_CHARACTERS]
        moments = re.findall(_MOMENT, _behind_headers(context)) if context else []
        histogram = Histogram(
            source=self._source,
            line=self._line,
            dialect=dialect,
            has_modules=bool(header and header["modules"]) or bool(found.modules),
            rows=found.rows,
            modules=found.modules,
            total=found.total,
            cut=found.cut,
            doubts=found.doubts,
            moment=f"{moments[-1].lower()} full gc" if moments else None,
            stamp=read_stamp(context) if context else Stamp(),
        )
        return histogram, found.end


def _behind_headers(context: str) -> str:
    """What does not belong to the table before: a few lines, for another thread may log between the words and the header."""
    end = max((header.end() for header in _HEADER.finditer(context)), default=0)
    return context[end:]


def _dialect(header: re.Match[str] | None) -> str:
    if header and header["columns"].startswith("object"):
        return "openj9"
    return "agent" if header and header["title"].startswith("Class") else "hotspot"


def _line_after(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1


class _Table(NamedTuple):
    rows: dict[str, tuple[int, int]]
    modules: dict[str, str]
    total: Counts | None
    cut: str | None
    doubts: tuple[str, ...]
    end: int


def _read_columns(text: str, start: int, end: int) -> _Table | None:
    """Read a plain table, column by column; None where it is none: then the lines have to be looked at.

    `end`: where a line before a Total ends; -1: there is none, nothing but rows it may be.
    """
    ruler_end = text.find("\n", start)
    if ruler_end < 0 or text[start:ruler_end].strip("- \t"):
        return None
    whole = end >= 0
    if not whole:
        end = len(text)
    total_end = _line_after(text, end + 1)
    total = _TOTAL.fullmatch(text, end + 1, total_end)
    numbers: list[str] = []
    objects: list[int] = []
    taken: list[int] = []
    names: list[str] = []
    modules: dict[str, str] = {}
    for chunk in _chunks(text, ruler_end, end):
        plain = _without_modules(chunk, modules)
        words = plain.split()
        if len(words) % 4:
            return None
        # What int() takes and a JVM does not write: 1_000, +5, -3, ٣.
        odd = not whole and (not plain.isascii() or any(sign in plain for sign in "_+-"))
        if odd and not re.fullmatch(_DIGITS, "".join(words[1::4] + words[2::4])):
            return None
        try:
            objects += map(int, words[1::4])
            taken += map(int, words[2::4])
        except ValueError:
            return None
        numbers += words[-4:-3] if whole else words[::4]
        names += words[3::4]
    if not names:
        return None
    printed = total and _counts(total)
    if whole:
        # Damage that leaves four words in each row, the last row's number and both sums right, leaves all numbers right.
        if (
            (sum(objects), sum(taken)) != printed
            or numbers[-1] != f"{len(names)}:"
            or min(objects) < 0
            or min(taken) < 0
        ):
            return None
    elif " ".join(numbers) != _numbered(len(names)) or taken[0] >= _TOO_MANY or not _in_order(objects, taken):
        return None
    rows = dict(zip(names, zip(objects, taken)))
    if len(rows) < len(names):
        rows = _summed(names, objects, taken)
    doubts = () if whole or text.endswith("\n") else (_NO_END,)
    return _Table(rows, modules, printed, None if whole else _NO_TOTAL, doubts, total_end)


@lru_cache(maxsize=2)
def _numbered(count: int) -> str:
    """The row numbers of a table as they stand in it."""
    return " ".join(["%d:"] * count) % tuple(range(1, count + 1))


def _in_order(objects: Sequence[int], taken: Sequence[int]) -> bool:
    """Whether the largest come first, and none has more objects than bytes."""
    return all(map(ge, taken, taken[1:])) and all(map(ge, taken, objects))


def _chunks(text: str, start: int, end: int) -> Iterator[str]:
    """Whole lines, a few thousand at once: their words are dropped while they are still in the processor's cache.

    The first ones are small: what is no table shows soon.
    """
    size = _FIRST_CHUNK_CHARACTERS
    while start < end:
        cut = text.find("\n", min(start + size, end), end)
        cut = end if cut < 0 else cut
        yield text[start:cut]
        start, size = cut, min(size * 4, _CHUNK_CHARACTERS)


def _without_modules(text: str, modules: dict[str, str]) -> str:
    """The text less each ` (MODULE)`, which goes into `modules` by the name before it."""
    first, *others = text.split("(")
    kept = [first]
    for part in others:
        module, _, rest = part.partition(")")
        name = kept[-1].rsplit(None, 1)[-1:]
        if not name:
            return text  # no plain table
        modules[name[0]] = module
        kept.append(rest)
    return "".join(kept)


def _summed(names: Sequence[str], objects: Sequence[int], taken: Sequence[int]) -> dict[str, tuple[int, int]]:
    rows: dict[str, tuple[int, int]] = {}
    for name, instances, size in zip(names, objects, taken):
        before = rows.get(name, (0, 0))
        rows[name] = (before[0] + instances, before[1] + size)
    return rows


def sum_rows(rows: Mapping[str, tuple[int, int]]) -> Counts:
    """All rows together."""
    return Counts(sum(map(itemgetter(0), rows.values())), sum(map(itemgetter(1), rows.values())))


class _Lines:
    """Reads a table line by line, behind whatever a log put before each of them."""

    def __init__(self, source: str, number: int, dialect: str, prefix: str) -> None:
        self.source, self.number, self.dialect = source, number, dialect
        self.pattern = re.compile(_OPENJ9_ROW if dialect == "openj9" else _ROW, re.ASCII)
        self.prefix = _shape(prefix)
        self.rows: dict[str, tuple[int, int]] = {}
        self.modules: dict[str, str] = {}
        self.sizes: dict[int, int] = {}  # of each row, by its number, in the order they came
        self.smallest = 1 << 63
        self.elided = False
        self.torn = False
        self.unended = False

    def read(self, text: str, position: int) -> _Table:
        """Read on until the Total, the next histogram, or the end."""
        for start, end in _line_ends(text, position):
            line = text[start:end]
            if header := _HEADER.search(line):
                self.torn = _is_torn_row(self._body(line[: header.start()]))
                return self._close(start)
            body = self._body(line)
            if total := _TOTAL.fullmatch(body):
                return self._close(min(end + 1, len(text)), line, _counts(total))
            if row := self._row(body):
                number, instances, size = map(int, row.groups()[:3])  # at most 19 ASCII digits each
                # The largest comes first: row 1 below a smaller one begins a histogram that has no header.
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
            raise self._bad(f"row {number} stands twice in one histogram", line)
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
        """A line that is no row: damage, an ellipsis, or something of the log's own."""
        words = body.split()
        if not words or body.strip().startswith("---"):
            return
        if set(words[0]) <= set(".…[](<>") and len(words) < 8:
            self.elided = True
        elif words[0].startswith("Total") and len(words) <= 4:
            raise self._bad("this is no Total of a histogram", line)
        elif _is_nearly_a_row(body):
            if not is_last:
                raise self._bad("this is no row of a histogram (number: instances bytes class)", line)
            self.torn = True

    def _close(self, end: int, line: str = "", total: Counts | None = None) -> _Table:
        numbers = self.sizes.keys()
        last = max(numbers, default=0)
        missing = last - len(numbers)
        summed = sum_rows(self.rows)
        reasons = []
        if missing:
            first = next(number for number in range(1, last + 1) if number not in numbers)
            reasons.append(f"{missing} of {last} rows are missing, from row {first} on")
        if total is None:
            reasons.append("its last line is torn" if self.torn else _NO_TOTAL)
        elif summed != total and not missing:
            if not (self.elided or not last) and not self._overflowed(summed, total):
                raise self._bad(
                    f"the {last} rows add up to {summed.instances} instances and {summed.bytes} bytes, not to this Total",
                    line,
                )
            if not self._overflowed(summed, total):
                reasons.append("rows are left out before the Total")
        elif summed.instances > total.instances or summed.bytes > total.bytes:
            raise self._bad(
                f"the rows alone have {summed.instances} instances and {summed.bytes} bytes, more than this Total", line
            )
        return _Table(
            self.rows, self.modules, total, "; ".join(reasons) or None, self._doubts() if reasons else (), end
        )

    def _overflowed(self, summed: Counts, total: Counts) -> bool:
        """The serviceability agent counts in 32 bits."""
        return self.dialect == "agent" and all((ours - theirs) % 2**32 == 0 for ours, theirs in zip(summed, total))

    def _doubts(self) -> tuple[str, ...]:
        """JVMs print the largest class first: where no Total vouches for the numbers, that is all that can be checked."""
        doubts = (_NO_END,) if self.unended else ()
        rows = sorted(self.sizes.items())
        for (_, earlier), (number, later) in zip(rows, rows[1:]):
            if later > earlier:
                return (f"row {number} has more bytes than the row before it: one of the two may be damaged", *doubts)
        return doubts

    def _bad(self, problem: str, line: str) -> BadInput:
        return BadInput(self.source, problem, self.number, line.strip())


def _counts(total: re.Match[str]) -> Counts:
    return Counts(int(total[1]), int(total[2]))  # a number: 19 ASCII digits at most


def _is_torn_row(text: str) -> bool:
    """Whether what stands before a header on its line begins as a row does."""
    return re.match(_ROWS_BEGINNING, text, re.ASCII) is not None


def _is_nearly_a_row(text: str) -> bool:
    """Whether it was a row once: a number with a colon, or three short words with a digit each, then a name."""
    words = text.split(None, 5)
    if not words:
        return False
    if re.match(_NUMBERED, words[0], re.ASCII):
        return True
    if len(words) not in (4, 5) or len(words[0]) > 9:
        return False
    if any(":" in word or "-" in word or re.search(_DIGITS, word) is None for word in words[1:3]):
        return False
    return len(words) == 4 or (len(words[4]) > 2 and words[4].startswith("(") and words[4].endswith(")"))


def _line_ends(text: str, position: int) -> Iterator[tuple[int, int]]:
    """(start, end) of each line; the end is that of its text."""
    while position < len(text):
        end = text.find("\n", position)
        yield position, len(text) if end < 0 else end
        position = len(text) if end < 0 else end + 1


def _shape(prefix: str) -> re.Pattern[str] | None:
    """What a log puts before each line: as it stands before the header, with any other digits."""
    if not prefix.strip() or len(prefix) > _LONGEST_PREFIX:
        return None
    words = re.split(r"(\d+|\s+)", prefix.rstrip(), flags=re.ASCII)
    return re.compile(
        "".join(
            (r"\s+" if word.isspace() else r"\d+") if place % 2 else re.escape(word) for place, word in enumerate(words)
        ),
        re.ASCII,
    )


def _split_module(name: str) -> tuple[str, str]:
    if name.endswith(")") and " (" in name:
        name, _, module = name[:-1].rpartition(" (")
        return name.rstrip(), module
    return name, ""
