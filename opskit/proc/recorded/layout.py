"""Answers as lines of an index, and back: one line for each path, its fields between tabs, below a line with the names of the fields."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, Any

from opskit.errors import BadInput
from opskit.proc.file_id import FileId
from opskit.proc.file_space import Space
from opskit.proc.recorded import tape as kinds
from opskit.proc.recorded.escaped import escaped, escaped_bytes, is_escaped, unescaped, unescaped_bytes
from opskit.proc.recorded.tape import Failure
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MOST_LINES, _MOST_NAMES = 1 << 21, 1 << 20
_MOST_FIELDS = 12  # of a line with a fixed number of them
_BATCH = 1 << 16  # characters that are split at once
_LINES_AT_ONCE = 512  # are joined: as text they take twice the memory
# Numbers that no kernel gives would overflow in functions that take C's.
FIELD, _NUMBER, _MAYBE, _FLAG = r"[^\t\n]*", r"[0-9]{1,20}", r"(?:-|[0-9]{1,20})", r"(?:yes|no)"
_OCTAL, _TIME_NS = r"[0-7]{1,10}", r"-?[0-9]{1,19}"
_STAT_NUMBERS = {"inode": _NUMBER, "mode": "[0-9]{1,9}", "uid": "[0-9]{1,10}", "gid": "[0-9]{1,10}", "ctime_ns": _TIME_NS, "mtime_ns": _TIME_NS}  # fmt: skip
_FAILURE = rf"\t[0-9]{{1,9}}\t[A-Z0-9]*\t(?:-|refused|counted|refused,counted)(?:\t{FIELD})?"
_FD = re.compile(rb"[0-9]{1,10}")  # a copied tree may hold other names
_FLAGS = {True: "yes", False: "no"}
_ENTRY_KINDS = {(False, False): "-", (True, False): "d", (False, True): "l", (True, True): "b"}
_ENTRY_FLAGS = {kind: flags for flags, kind in _ENTRY_KINDS.items()}
_SPACE_COLUMNS = ("read_only", "free_bytes", "free_inodes", "size_bytes", "block_bytes", "inodes", "reserved_bytes")


class Shape(NamedTuple):
    """How the answers of a kind are written.

    `fields`: an expression for what follows the path; `never`: one for what stands in no line. A long repetition of a group would
    take much memory. `write`: the lines of an answer, after their path; `read`: from the fields of all lines to all answers.
    """

    columns: tuple[str, ...]
    fields: str
    write: Callable[[Any], Iterable[str]]
    read: Callable[[Iterator[list[str]]], dict[str, Any]]
    never: str = ""

    @property
    def head(self) -> str:
        """The first line of such a file."""
        return "\t".join(("path", *self.columns))


def index_of(shape: Shape, answers: Iterable[tuple[str, Any]]) -> bytes:
    """The content of an index."""
    parts: list[bytes] = []
    lines = [shape.head]
    for key, answer in answers:
        name = escaped(key)
        lines += [name + rest for rest in shape.write(answer)]
        if len(lines) >= _LINES_AT_ONCE:
            parts.append(_joined(lines))
            lines.clear()
    return b"".join([*parts, _joined(lines)])


def _joined(lines: list[str]) -> bytes:
    return "".join([f"{line}\n" for line in lines]).encode("utf-8", "surrogateescape")


def check_index(shape: Shape, data: bytes, source: str) -> str:
    """The text of an index. Raises BadInput, with the line, for what `read` could not read."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(source, "is not UTF-8", data.count(b"\n", 0, error.start) + 1) from None
    if not text.startswith(f"{shape.head}\n"):
        raise BadInput(source, f"does not begin with the fields {shape.head!r}", 1, text[:200].partition("\n")[0])
    if (lines := text.count("\n")) > MOST_LINES:
        raise BadInput(source, f"has {lines:,} lines, more than the {MOST_LINES:,} that are read")
    if text.count("\t") > _MOST_NAMES + _MOST_FIELDS * lines:
        raise BadInput(source, f"has more than {_MOST_NAMES:,} names, the most that are read")
    if not text.endswith("\n"):
        raise BadInput(source, "has no end of line at its end")
    if not is_escaped(text):
        raise BadInput(source, "has control characters, or a backslash that is no escape")
    start, end = len(shape.head) + 1, len(text) - 1
    for expression in (rf"^(?!{FIELD}{shape.fields}$)", shape.never):
        bad = re.compile(expression, re.MULTILINE).search(text, start, end) if expression and start <= end else None
        if bad:
            at = text.rindex("\n", 0, max(bad.start(), start)) + 1
            raise BadInput(
                source,
                "the fields of a line are wrong",
                text.count("\n", 0, at) + 1,
                text[at : at + 200].partition("\n")[0],
            )
    return text


def read_index(shape: Shape, text: str) -> dict[str, Any]:
    """The answers in an index that check_index() has let pass."""
    return shape.read(rows_of(text))


def rows_of(text: str) -> Iterator[list[str]]:
    """The fields of each line."""
    start = text.find("\n") + 1
    while start < len(text):
        end = text.find("\n", min(start + _BATCH, len(text) - 1))
        for line in text[start:end].split("\n"):
            yield line.split("\t")
        start = end + 1


def _each(make: Callable[[list[str]], Any]) -> Callable[[Iterator[list[str]]], dict[str, Any]]:
    return lambda rows: {unescaped(row[0]): make(row) for row in rows}


def _flag(answer: bool) -> list[str]:
    return [f"\t{_FLAGS[answer]}"]


def _file_id(answer: FileId) -> list[str]:
    return ["\t" + "\t".join(map(str, answer))]


def _names(answer: tuple[str, ...]) -> list[str]:
    return ["".join(["\t" + escaped(name) for name in answer])]


def _entries(answer: tuple[tuple[str, bool, bool], ...]) -> list[str]:
    return ["".join([f"\t{_ENTRY_KINDS[flags[0], flags[1]]}{escaped(name)}" for name, *flags in answer])]


def _read_entries(row: list[str]) -> tuple[tuple[str, bool, bool], ...]:
    return tuple([(unescaped(field[1:]), *_ENTRY_FLAGS[field[0]]) for field in row[1:]])


def _fds(answer: tuple[tuple[bytes, bytes, int], ...]) -> list[str]:
    lines = [
        f"\t{name.decode()}\t{mode:o}\t{escaped_bytes(target)}" for name, target, mode in answer if _FD.fullmatch(name)
    ]
    return lines or [""]


def _read_fds(rows: Iterator[list[str]]) -> dict[str, Any]:
    found: dict[str, list[tuple[bytes, bytes, int]]] = {}
    for row in rows:
        fds = found.setdefault(row[0], [])
        if len(row) == 4:
            fds.append((row[1].encode(), unescaped_bytes(row[3]), int(row[2], 8)))  # a number: octal digits
    return {unescaped(key): tuple(fds) for key, fds in found.items()}


def _space(answer: Space) -> list[str]:
    return ["\t" + "\t".join([_FLAGS[answer[0]], *("-" if value is None else str(value) for value in answer[1:])])]


def _read_space(row: list[str]) -> Space:
    return Space(row[1] == "yes", *(None if field == "-" else int(field) for field in row[2:]))  # type: ignore[arg-type]  # a number: checked


def _numbers(fields: list[str]) -> list[int]:
    return [int(field) for field in fields]  # a number: checked


_STAT = Shape(
    FileId._fields,
    "".join(rf"\t{_STAT_NUMBERS.get(name, '[0-9]{1,19}')}" for name in FileId._fields),
    _file_id,
    _each(lambda row: FileId._make(_numbers(row[1:]))),
)
_YES = Shape(("answer",), rf"\t{_FLAG}", _flag, _each(lambda row: row[1] == "yes"))
_NAMES = Shape(("names",), r"(?:\t[^\n]*)?", _names, _each(lambda row: tuple([unescaped(field) for field in row[1:]])))
SHAPES = {
    kinds.LINK: Shape(
        ("target",), rf"\t{FIELD}", lambda answer: [f"\t{escaped_bytes(answer)}"], _each(lambda row: unescaped_bytes(row[1]))
    ),
    kinds.STAT: _STAT,
    kinds.LSTAT: _STAT,
    kinds.NAMES: _NAMES,
    kinds.SOME: _NAMES,
    kinds.PAGES: Shape(
        ("pages",), r"\t[0-9]{1,19}", lambda answer: [f"\t{answer}"], _each(lambda row: int(row[1]))  # a number: checked
    ),
    kinds.ENTRIES: Shape(("entries",), r"(?:\t[^\n]*)?", _entries, _each(_read_entries), r"\t(?![-dlb])"),
    kinds.FDS: Shape(("fd", "mode", "target"), rf"(?:\t[0-9]{{1,10}}\t{_OCTAL}\t{FIELD})?", _fds, _read_fds),
    kinds.SPACE: Shape(
        _SPACE_COLUMNS, rf"\t{_FLAG}\t{_NUMBER}\t{_MAYBE}(?:\t{_NUMBER}){{2}}\t{_MAYBE}\t{_NUMBER}", _space, _each(_read_space)
    ),
    kinds.WRITABLE: _YES,
    kinds.OPENED: _YES,
    kinds.UNTRUSTED: _YES,
}  # fmt: skip

# The other indexes, whose rows are read in store.py
REFUSED = Shape(
    ("kind", "errno", "name", "how", "why"),
    rf"\t(?:{'|'.join(kinds.KINDS)}){_FAILURE}",
    lambda pair: [f"\t{pair[0]}{_failure(pair[1])}"],
    _each(lambda row: row),
)
ODD = Shape(
    ("kind", "file"), r"\t(?:file|reply)\t[0-9]{1,9}", lambda pair: [f"\t{pair[0]}\t{pair[1]}"], _each(lambda row: row)
)
RANGES = Shape(
    ("offset", "size", "at"),
    rf"(?:\t[0-9]{{1,20}}\t(?:[0-9]{{1,10}}\t[0-9]{{1,10}}|failed{_FAILURE}))?",
    lambda rows: rows,
    _each(lambda row: row),
)


def _failure(failure: Failure) -> str:
    why = "" if failure.why is None else f"\t{escaped(failure.why)}"
    how = ",".join(["refused"] * failure.is_refused + ["counted"] * failure.is_counted) or "-"
    return f"\t{failure.errno}\t{errno.errorcode.get(failure.errno, '')}\t{how}{why}"


def range_row(offset: int, answer: Failure) -> str:
    """The fields of a part of a file that could not be read."""
    return f"\t{offset}\tfailed{_failure(answer)}"


def failure_in(fields: list[str]) -> Failure:
    """The failure of its errno, name, flags and reason."""
    written, _, how, *why = fields
    number = int(written)  # a number: checked
    return Failure(number, unescaped(why[0]) if why else None, "refused" in how, "counted" in how)
