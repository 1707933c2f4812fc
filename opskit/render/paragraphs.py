"""Paragraphs for a terminal: folded at its width below their lead, or cut to one line.

1. stuck  deadlock of 2 threads in 25395 (orders): "deadlock-A" waits for a lock
          held by "deadlock-B"
          next: opskit jpmp 25395 --locks
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.escape import printable
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEAST = 20  # columns for the text, however narrow the terminal is
_ANSI = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "cyan": "36", "green": "32"}


class Paragraph(NamedTuple):
    """A lead (` 1. stuck  `, which may be blanks) and a text. `is_command`: the terminal itself wraps it, so that it can be copied."""

    text: str
    lead: str = ""
    style: str = ""
    lead_style: str = ""
    is_command: bool = False
    is_cut: bool = False  # to one line


def folded(paragraph: Paragraph, width: int | None) -> list[str]:
    """Its lines, without the lead. `width`: of the terminal; None: no terminal, one line."""
    text = printable(paragraph.text)
    if width is None or paragraph.is_command:
        return [text]
    room = max(_LEAST, width - _cells(paragraph.lead))
    if paragraph.is_cut:
        return [_cut(text, room)]
    return [*_fold(text, room)]


def rows(paragraph: Paragraph, width: int | None) -> int:
    """How many lines of the terminal it takes."""
    lines = folded(paragraph, width)
    if width is None or not paragraph.is_command:
        return len(lines)
    return max(1, -(-(_cells(paragraph.lead) + _cells(lines[0])) // width))


def render(paragraph: Paragraph, width: int | None, *, color: bool) -> Iterator[str]:
    """Its lines as they are printed."""
    lead = paragraph.lead
    for line in folded(paragraph, width):
        text = _styled(lead, paragraph.lead_style, color) + _styled(line, paragraph.style, color)
        yield text if color else text.rstrip()
        lead = " " * _cells(paragraph.lead)


def _styled(text: str, style: str, color: bool) -> str:
    return f"\x1b[{_ANSI[style]}m{text}\x1b[0m" if color and style and text else text


def _cells(text: str) -> int:
    """Columns that a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _cut(text: str, room: int) -> str:
    from opskit.render.formats.one_line import clip

    return text if _cells(text) <= room else clip(text, room)


def _fold(text: str, room: int) -> Iterator[str]:
    line = ""
    for word in text.split(" "):
        if line and _cells(line) + 1 + _cells(word) > room:
            yield line
            line = ""
        elif line:
            word = f"{line} {word}"
        while _cells(word) > room:  # a path, a name
            part = next(size for size in range(min(room, len(word)), 0, -1) if _cells(word[:size]) <= room)
            yield word[:part]
            word = word[part:]
        line = word
    yield line
