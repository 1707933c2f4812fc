"""Counts by cell: added from histograms, and gone through in ascending order. Memory follows the cells that are used."""

from __future__ import annotations

import sys
from array import array
from itertools import compress
from operator import add
from typing import TYPE_CHECKING

from opskit.jvm.logs.hdr.counts import FIELD_BITS, FIELD_BYTES, FIELD_MOST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opskit.jvm.logs.hdr.record import Counts

_PAGE_BITS = 8
_PAGE = 1 << _PAGE_BITS
_MOST_PAGES = 1 << 15  # 64 MiB
MOST_TOTAL = (1 << 63) - 1


class Full(Exception):  # noqa: N818  (it leaves an interval out)
    """There is no space for these counts; nothing was added."""


class Space:
    """The memory that all Cells together may use."""

    def __init__(self, pages: int = _MOST_PAGES) -> None:
        self.left = pages


class Cells:
    """Counts by cell. `total`: not less than all counts together."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._taken = 0
        self._pages: dict[int, array[int]] = {}
        self._packed = self._field = 0  # fields that are not yet in pages, and what none of them is above
        self.total = 0

    def add(self, counts: Counts) -> None:
        """Add a histogram. Raises Full."""
        if self.total + counts.total > MOST_TOTAL:
            raise Full
        self._check(counts)
        if counts.packed:
            self._add_packed(counts.packed, counts.field, counts.top)
        else:
            self._add_pairs(counts.pairs)
        self.total += counts.total

    def _check(self, counts: Counts) -> None:
        """Raise Full if there is not enough space; the exact number of pages matters where it is scarce only."""
        needed = (counts.top >> _PAGE_BITS) + 2
        if needed > self._space.left and not counts.packed:
            needed = len({cell >> _PAGE_BITS for cell, _ in counts.pairs} - self._pages.keys())
        if needed > self._space.left + (self._taken if counts.packed else 0):
            raise Full

    def _add_packed(self, packed: int, field: int, top: int) -> None:
        self._take((top >> _PAGE_BITS) + 1)
        if self._field + field > FIELD_MOST:
            self._unpack()
        self._packed += packed
        self._field += field

    def _take(self, pages: int) -> None:
        if pages > self._taken:
            self._space.left -= pages - self._taken
            self._taken = pages

    def _add_pairs(self, pairs: Iterable[tuple[int, int]]) -> None:
        pages = self._pages
        for cell, count in pairs:
            try:
                pages[cell >> _PAGE_BITS][cell & _PAGE - 1] += count
            except KeyError:
                self._page(cell >> _PAGE_BITS)[cell & _PAGE - 1] += count

    def _page(self, number: int) -> array[int]:
        self._take(len(self._pages) + 1)
        page = self._pages[number] = array("q", bytes(8 * _PAGE))
        return page

    def _fields(self) -> array[int]:
        fields = array("H")
        fields.frombytes(
            self._packed.to_bytes((self._packed.bit_length() + FIELD_BITS - 1) // FIELD_BITS * FIELD_BYTES, "little")
        )
        if sys.byteorder == "big":
            fields.byteswap()
        return fields

    def _unpack(self) -> None:
        fields = self._fields()
        for first in range(0, len(fields), _PAGE):
            some = fields[first : first + _PAGE]
            if any(some):
                page = self._pages.get(first >> _PAGE_BITS)
                if page is None:
                    page = self._page(first >> _PAGE_BITS)
                page[: len(some)] = array("q", map(add, page, some))
        self._packed = self._field = 0

    def runs(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """The cells that have a count, ascending, and their counts: piece by piece."""
        if self._packed and not self._pages:
            fields = self._fields()
            yield array("q", compress(range(len(fields)), fields)), array("q", filter(None, fields))
            return
        self._unpack()
        for number in sorted(self._pages):
            page, first = self._pages[number], number << _PAGE_BITS
            cells = array("q", compress(range(first, first + _PAGE), page))
            if cells:
                yield cells, array("q", filter(None, page))
