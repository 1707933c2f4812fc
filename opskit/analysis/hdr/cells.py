"""Counts by cell: added from histograms, and gone through in ascending order. Memory follows the cells that are used."""

from __future__ import annotations

from array import array
from itertools import compress
from operator import add
from typing import TYPE_CHECKING

from opskit.jvm.logs.hdr.counts import FIELD_BITS, FIELD_BYTES, FIELD_MOST, fields_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.jvm.logs.hdr.record import Counts

_PAGE_BITS = 8
_PAGE = 1 << _PAGE_BITS
_MOST_PAGES = 1 << 14  # 32 MiB
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
        if counts.packed:
            self._add_packed(counts.packed, counts.field, counts.top)
        elif counts.top >= 0:
            self._reserve(counts)
            for cell, block in counts.blocks:
                self._add_block(cell, block)
        self.total += counts.total

    def _reserve(self, counts: Counts) -> None:
        """Raise Full if there is not enough space; the exact number of pages matters where it is scarce only."""
        if (counts.top >> _PAGE_BITS) + 1 > self._space.left:
            pages: set[int] = set()
            for cell, block in counts.blocks:
                pages.update(range(cell >> _PAGE_BITS, (cell + len(block) - 1 >> _PAGE_BITS) + 1))
            if len(pages - self._pages.keys()) > self._space.left:
                raise Full

    def _add_packed(self, packed: int, field: int, top: int) -> None:
        pages = (top >> _PAGE_BITS) + 1
        if pages - self._taken > self._space.left:
            raise Full
        self._take(pages)
        if self._field + field > FIELD_MOST:
            self._unpack()
        self._packed += packed
        self._field += field

    def _take(self, pages: int) -> None:
        if pages > self._taken:
            self._space.left -= pages - self._taken
            self._taken = pages

    def _add_block(self, cell: int, counts: Sequence[int]) -> None:
        place = 0
        while place < len(counts):
            number, first = cell + place >> _PAGE_BITS, cell + place & _PAGE - 1
            some = counts[place : place + _PAGE - first]
            place += len(some)
            page = self._pages.get(number)
            if page is None:
                if not any(some):
                    continue
                self._take(len(self._pages) + 1)
                page = self._pages[number] = array("q", bytes(8 * _PAGE))
            if len(some) == 1:
                page[first] += some[0]
            else:
                end = first + len(some)
                page[first:end] = array("q", map(add, page[first:end], some))

    def _fields(self) -> array[int]:
        fields = (self._packed.bit_length() + FIELD_BITS - 1) // FIELD_BITS
        return fields_of(self._packed.to_bytes(fields * FIELD_BYTES, "little"))

    def _unpack(self) -> None:
        self._add_block(0, self._fields())
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
