"""Chunks that glibc's malloc maps by themselves (malloc/malloc.c, sysmalloc_mmap): 128 KiB and more, page by page.

Each begins with a header: 0 or an offset below a page, and its size with the flag IS_MMAPPED alone. The kernel merges neighbours to one
mapping, so headers follow each other in it. Only present pages are read.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.proc.memory import PAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.pagemap import PresentMemory

_HEADER = struct.Struct("<QQ")
_FLAGS, _MMAPPED = 7, 2
_LEAST_PAGES = 2
_SIZE_AT, _PAGES_AT_ONCE = 8, 32
_NOT_COUNTED = 16  # glibc 2.43: the size in the header is without it
_IS_LOW_BYTE = bytes(each in (_MMAPPED, 256 - _NOT_COUNTED + _MMAPPED) for each in range(256))


class ChunkReader:
    """Finds chunks; at most `most_misses` pages that are no chunk's begin are read in all."""

    def __init__(self, memory: PresentMemory, most_misses: int) -> None:
        self._memory, self._left = memory, most_misses

    def find(self, gaps: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """The chunks (start, end) in parts of anonymous writable mappings, which begin at a page.

        A part that begins with a chunk has most often nothing else; the others are searched after all of these.
        """
        found: list[tuple[int, int]] = []
        rest = []
        for start, end in gaps:
            at = self._row(start, end, found)
            if at < end:
                rest.append((at, end))
        for start, end in rest:
            at = start
            while at + _LEAST_PAGES * PAGE_BYTES <= end and self._left > 0:
                at = self._row(self._next_candidate(at + PAGE_BYTES, end), end, found)
        return sorted(found)

    def _row(self, at: int, end: int, found: list[tuple[int, int]]) -> int:
        """Add chunks that follow each other; where they end."""
        while at + _LEAST_PAGES * PAGE_BYTES <= end and (size := self._size(at, end)):
            found.append((at, at + size))
            at += size
        return at

    def _size(self, at: int, end: int) -> int:
        """The size of the chunk at an address; 0: there is none."""
        data = self._memory.read(at, _HEADER.size)
        if len(data) < _HEADER.size:
            return 0
        before, head = _HEADER.unpack(data)
        size: int = head & ~_FLAGS
        size += _NOT_COUNTED if size % PAGE_BYTES else 0
        is_whole = not size % PAGE_BYTES and size >= _LEAST_PAGES * PAGE_BYTES
        return size if head & _FLAGS == _MMAPPED and is_whole and before < PAGE_BYTES and at + size <= end else 0

    def _next_candidate(self, at: int, end: int) -> int:
        """The next page that may begin a chunk: so many pages are read at once, and the lowest byte of the size compared in all."""
        while at < end and self._left > 0:
            at = self._memory.next_present(at, end)
            wanted = min(end - at, _PAGES_AT_ONCE * PAGE_BYTES)
            data = self._memory.read(at, wanted) if wanted > 0 else b""
            found = data[_SIZE_AT::PAGE_BYTES].translate(_IS_LOW_BYTE).find(1)
            pages = found if found >= 0 else max(1, len(data) // PAGE_BYTES)
            self._left -= max(1, pages)
            at += pages * PAGE_BYTES
            if found >= 0:
                break
        return at
