"""Free memory inside glibc's arenas: the chunks in their bins, and what of it is still resident.

The lists change while they are read. A chunk counts where the next one points back to it; a list that keeps changing makes the sum
unknown. malloc_info(3) counts the same: the top chunk, bins and fastbins, but not what threads keep in their caches (tcache).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.proc.memory import PAGE_BYTES
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.malloc.arenas import Arena
    from opskit.proc.memory import Memory
    from opskit.proc.pagemap import PageMap

_CHUNK = struct.Struct("<4Q")  # size of the one before if that is free, size and flags, next, previous
_FLAGS = 7
_LEAST, _ALIGNED = 32, 16
_LINKS_BYTES = 48  # of a free chunk: its sizes and links, which stay in memory
_MOST_REPAIRS = 64  # in one list
_LARGEST = 1 << 47


class Free(NamedTuple):
    """Free bytes of some arenas, those of their top chunks, and those on whole pages that are in memory. None: unknown."""

    bytes: int
    top_bytes: int
    resident_bytes: int


class TooMany(Exception):  # noqa: N818
    """More free chunks than may be read."""


class _Unstable(Exception):  # noqa: N818
    """A list that changes faster than it can be read, or is none."""


class FreeChunks:
    """The free chunks of arenas, at most `most` of them. Absent pages are not read."""

    def __init__(self, memory: Memory, most: int) -> None:
        self._memory, self._left = memory, most
        self.chunks: list[tuple[int, int]] = []  # address and size of those that may hold a whole page
        self.bytes = self.top_bytes = 0

    def add(self, arena: Arena) -> bool:
        """Add an arena's; False where they are unknown. Raises TooMany."""
        if not arena.system_bytes:
            return True
        size = self._size(arena.top)
        if size is None or size > arena.system_bytes:
            return False
        self.top_bytes += size
        self._count(arena.top, size)
        before = self.bytes
        try:
            for number, first in enumerate(arena.fastbins):
                self._fastbin(first, (number + 2) * 16)
            for head, first in arena.bins:
                if first != head:
                    self._bin(head, first)
        except _Unstable:
            return False
        return self.bytes - before <= arena.system_bytes

    def resident_bytes(self, pagemap: PageMap) -> int:
        """How much of them is on whole pages that are in memory: what malloc_trim(3) can give back."""
        found = 0
        for at, size in self.chunks:
            start, end = -(-(at + _LINKS_BYTES) // PAGE_BYTES), (at + size) // PAGE_BYTES
            if end > start:
                found += pagemap.resident_bytes(start * PAGE_BYTES, end * PAGE_BYTES)
        return found

    def _count(self, at: int, size: int) -> None:
        self.bytes += size
        self._left -= 1
        if self._left < 0:
            raise TooMany
        if size > PAGE_BYTES:
            self.chunks.append((at, size))

    def _size(self, at: int) -> int | None:
        data = self._memory.read(at + 8, 8)
        size = int.from_bytes(data, "little") & ~_FLAGS
        return size if len(data) == 8 and _LEAST <= size < _LARGEST and not size % _ALIGNED else None

    def _bin(self, head: int, first: int) -> None:
        """Walk a doubly linked list; where it has changed meanwhile, go back to a chunk that is still in it."""
        path: list[tuple[int, int]] = []  # chunks, and their sizes
        at, repairs = first, 0
        unpack, read = _CHUNK.unpack, self._memory.read
        while at != head:
            data = read(at, _CHUNK.size)
            _, size, following, previous = unpack(data) if len(data) == _CHUNK.size else (0, 0, 0, 0)
            size &= ~_FLAGS
            if previous == (path[-1][0] if path else head) and _LEAST <= size < _LARGEST and not size % _ALIGNED:
                path.append((at, size))
                at = following
                if len(path) > self._left:
                    raise TooMany
                continue
            repairs += 1
            if repairs > _MOST_REPAIRS:
                raise _Unstable
            at = self._again(path, head)
        for chunk, size in path:
            self._count(chunk, size)

    def _again(self, path: list[tuple[int, int]], head: int) -> int:
        """Take away the chunks at the end that are no longer in the list; where it goes on."""
        forget = getattr(self._memory, "forget", None)
        if forget is not None:
            forget()
        while path:
            data = self._memory.read(path[-1][0], _CHUNK.size)
            if len(data) == _CHUNK.size:
                _, size, following, previous = _CHUNK.unpack(data)
                if size & ~_FLAGS == path[-1][1] and previous == (path[-2][0] if len(path) > 1 else head):
                    return following
            path.pop()
        data = self._memory.read(head + 16, 8)
        if len(data) < 8:
            raise _Unstable
        return int.from_bytes(data, "little")

    def _fastbin(self, first: int, size: int) -> None:
        """Walk a singly linked list, whose pointers are mangled by their own addresses since 2.32 (PROTECT_PTR)."""
        at = first
        while at:
            data = self._memory.read(at, 24)
            if len(data) < 24 or int.from_bytes(data[8:16], "little") & ~_FLAGS != size:
                raise _Unstable
            self._count(at, size)
            link = int.from_bytes(data[16:], "little")
            plain = link ^ (at + 16 >> 12)
            at = plain if not plain % _ALIGNED else link


def free_in(arenas: Iterable[Arena], memory: Memory, pagemap: PageMap, most: int) -> Free | None:
    """The free memory of all arenas; None where it is unknown. Raises TooMany."""
    found = FreeChunks(memory, most)
    if not all([found.add(arena) for arena in arenas]):
        return None
    return Free(found.bytes, found.top_bytes, found.resident_bytes(pagemap))
