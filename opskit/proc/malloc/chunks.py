"""Chunks that glibc's malloc maps by themselves (malloc/malloc.c, sysmalloc_mmap): 128 KiB and more, page by page.

Each begins with a header: 0 or an offset below a page, and its size with the flag IS_MMAPPED alone. The kernel merges neighbours to one
mapping, so headers follow each other in it. Only present pages are read.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.proc.memory import PAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.proc.pagemap import PresentMemory

_HEADER = struct.Struct("<QQ")
_FLAGS, _MMAPPED = 7, 2
_LEAST_PAGES = 2


class ChunkReader:
    """Finds chunks; at most `most_misses` pages that are no chunk's begin are read in all."""

    def __init__(self, memory: PresentMemory, most_misses: int) -> None:
        self._memory, self._left = memory, most_misses

    def chunks(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The chunks (start, end) in a part of an anonymous writable mapping. It begins at a page."""
        at = start
        while at < end and self._left > 0:
            size = self._size(at, end)
            if size:
                yield at, at + size
                at += size
                continue
            self._left -= 1
            at = self._memory.next_present(at + PAGE_BYTES, end)

    def _size(self, at: int, end: int) -> int:
        """The size of the chunk at an address; 0: there is none."""
        data = self._memory.read(at, _HEADER.size)
        if len(data) == _HEADER.size:
            before, head = _HEADER.unpack(data)
            size = int(head & ~_FLAGS)
            is_whole = not size % PAGE_BYTES and size >= _LEAST_PAGES * PAGE_BYTES
            if head & _FLAGS == _MMAPPED and is_whole and before < PAGE_BYTES and at + size <= end:
                return size
        return 0
