"""Read a plain class histogram by columns, several times as fast as line by line. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from operator import ge
from typing import TYPE_CHECKING

from opskit.jvm.dumps.histogram import NO_END, NO_TOTAL, TOTAL, Table, printed_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TOO_MANY = 1 << 63  # bytes or objects: HotSpot counts in 64 bits
_FIRST_CHUNK_CHARACTERS, _CHUNK_CHARACTERS = 1 << 9, 1 << 18


def read_columns(text: str, start: int, end: int) -> Table | None:
    """Read a plain table by columns; None where it is not plain and has to be read line by line.

    `end`: the end of the line before a Total; -1: there is no Total, and all of the text must be rows.
    """
    ruler_end = text.find("\n", start)
    if ruler_end < 0 or text[start:ruler_end].strip("- \t"):
        return None
    whole = end >= 0
    if not whole:
        end = len(text)
    total_end = line_after(text, end + 1)
    total = TOTAL.fullmatch(text, end + 1, total_end)
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
        # int() takes them, a JVM does not write them: 1_000, +5, -3, ٣.
        odd = not whole and (not plain.isascii() or any(sign in plain for sign in "_+-"))
        if odd and not re.fullmatch(r"[0-9]+", "".join(words[1::4] + words[2::4])):
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
    printed = total and printed_counts(total)
    if whole:
        # With both sums and the last row's number right, the numbers are.
        if (sum(objects), sum(taken)) != printed or numbers[-1] != f"{len(names)}:":
            return None
        if min(objects) < 0 or min(taken) < 0:
            return None
    elif " ".join(numbers) != _numbered(len(names)) or taken[0] >= _TOO_MANY or not _in_order(objects, taken):
        return None
    rows = dict(zip(names, zip(objects, taken)))
    if len(rows) < len(names):
        rows = _summed(names, objects, taken)
    doubts = () if whole or text.endswith("\n") else (NO_END,)
    return Table(rows, modules, printed, None if whole else NO_TOTAL, doubts, total_end)


@lru_cache(maxsize=2)
def _numbered(count: int) -> str:
    return " ".join(["%d:"] * count) % tuple(range(1, count + 1))


def _in_order(objects: Sequence[int], taken: Sequence[int]) -> bool:
    """Whether the largest rows come first, and none has more objects than bytes."""
    return all(map(ge, taken, taken[1:])) and all(map(ge, taken, objects))


def _chunks(text: str, start: int, end: int) -> Iterator[str]:
    """Whole lines, a few thousand at once: their words then fit into the processor's cache.

    The first chunks are small, so that a text that is not a table is noticed early.
    """
    size = _FIRST_CHUNK_CHARACTERS
    while start < end:
        cut = text.find("\n", min(start + size, end), end)
        cut = end if cut < 0 else cut
        yield text[start:cut]
        start, size = cut, min(size * 4, _CHUNK_CHARACTERS)


def _without_modules(text: str, modules: dict[str, str]) -> str:
    """The text without each ` (MODULE)`; `modules` gets it by the class name before it."""
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


def line_after(text: str, position: int) -> int:
    """The position after the line that has this position."""
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1
