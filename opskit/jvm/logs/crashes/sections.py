"""The lines of an hs_err file by their titles: `siginfo: …`, `Heap:` with the lines below it up to an empty one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_TITLE = re.compile(r"[^\s:(\[=#][^:(\[=]{0,79}")
_BAR = "-----"
_MOST_LINES = 2_000_000  # of one section; the mappings of a process are counted, however high vm.max_map_count is


class Sections:
    """A report's lines. A title counts where it stands first: what follows may quote it."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._first: dict[str, int] = {}
        for number, line in enumerate(lines):
            found = _TITLE.match(line)
            if found is not None and line[found.end() : found.end() + 1] != "=":  # a variable of the environment
                self._first.setdefault(found[0].rstrip(), number)

    def has(self, title: str) -> bool:
        """Whether a line begins with this title."""
        return title in self._first

    def titles(self, beginning: str) -> list[str]:
        """The titles that begin with these words."""
        return [title for title in self._first if title.startswith(beginning)]

    def line(self, title: str) -> str | None:
        """The whole line of a title."""
        at = self._first.get(title)
        return None if at is None else self.lines[at]

    def value(self, title: str) -> str | None:
        """The text after `TITLE:`, or after `TITLE (…):`; on the next line where nothing else follows."""
        at = self._first.get(title)
        if at is None:
            return None
        rest = self.lines[at][len(title) :].lstrip()
        if rest.startswith("("):
            rest = rest.partition(")")[2]
        rest = rest.lstrip(": ").strip()
        if not rest and at + 1 < len(self.lines):
            rest = self.lines[at + 1].strip()
        return rest or None

    def below(self, title: str, *, past_empty: bool = False) -> list[str]:
        """The lines below a title up to an empty one or a bar. `past_empty`: empty lines directly below it are skipped."""
        at = self._first.get(title)
        if at is None:
            return []
        begin = at + 1
        while past_empty and begin < len(self.lines) and not self.lines[begin].strip():
            begin += 1
        end = begin
        last = min(len(self.lines), begin + _MOST_LINES)
        while end < last and self.lines[end].strip() and not self.lines[end].startswith(_BAR):
            end += 1
        return list(self.lines[begin:end])
