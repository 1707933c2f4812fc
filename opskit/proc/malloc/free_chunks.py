"""Free memory inside glibc's arenas: the chunks in their bins, and what of it is still resident.

The lists change while they are read. A chunk counts where it points back to the one before, so the sum of a list that keeps changing is
too small, never too large. malloc_info(3) counts the same: the top chunk, bins and fastbins, but not what threads keep in their caches (tcache).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.proc.malloc.arenas import STATE_BYTES, parse_arena
from opskit.proc.memory import PAGE_BYTES
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.proc.malloc.arenas import Arena
    from opskit.proc.pagemap import PresentMemory
    from opskit.proc.spans import Span

_CHUNK = struct.Struct("<4Q")  # size of the one before if that is free, size and flags, next, previous
_CHUNK_BYTES, _FLAGS = _CHUNK.size, 7
_LEAST, _ALIGNED = 32, 16
_LINKS_BYTES = 48  # of a free chunk: its sizes and links, which stay in memory
_MOST_REPAIRS, _MOST_READS, _MOST_WALKS = 100, 8, 3
_LARGEST = 1 << 47
_NONE = (0, 0, 0)
_CHANGES = "its lists of free blocks change while they are read"
_MOST_PAGES = 16384
_PAGE_COST = 4  # to read a page, in chunks of pages that have been read


class Free(NamedTuple):
    """Free bytes of some arenas, those of their top chunks, and those on whole pages in memory. `incomplete`: why there may be more."""

    bytes: int
    top_bytes: int
    resident_bytes: int
    incomplete: str | None = None


def free_in(arenas: Sequence[Arena], memory: PresentMemory, most: int) -> Free | None:
    """The free memory of all arenas, as much as the budget `most` lets read; None where the arenas make no sense."""
    used = [arena for arena in arenas if arena.system_bytes]
    found = []
    for number, arena in enumerate(used):
        walk = _walked(arena, memory, most // (len(used) - number))
        if walk is None:
            return None
        found.append(walk)
        most -= walk.cost
    incomplete = next((walk.incomplete for walk in found if walk.incomplete is not None), None)
    resident = memory.resident_bytes(pages for walk in found for pages in walk.whole_pages())
    return Free(sum(walk.bytes for walk in found), sum(walk.top_bytes for walk in found), resident, incomplete)


def _walked(arena: Arena, memory: PresentMemory, most: int) -> _Walk | None:
    """The free chunks of one arena, read again where they have gone from list to list meanwhile; None where they make no sense."""
    best = None
    for _ in range(_MOST_WALKS):
        now = parse_arena(memory.part(arena.at, STATE_BYTES), arena.at)
        walk = _Walk(arena if now is None else now, memory, most)
        most -= walk.cost
        if walk.bytes <= arena.system_bytes and (best is None or walk.bytes > best.bytes):
            best = walk
        if not walk.has_changed:
            break
    return best


class _Walk:
    """One walk through the lists of an arena. Absent pages are not read."""

    def __init__(self, arena: Arena, memory: PresentMemory, most: int) -> None:
        self._memory, self._left = memory, most
        self._pages: dict[int, bytes] = {}
        self._repairs_left = _MOST_REPAIRS
        self._sizes: dict[int, int] = {}  # address -> size: one that goes from list to list meanwhile counts once
        self.top_bytes = 0
        self.has_changed = False
        self.incomplete: str | None = None
        self._add_top(arena)
        # The first bin has what was freed last, of all sizes; of the others the last ones have the largest chunks.
        for head, first in (arena.bins[0], *reversed(arena.bins[1:])):
            if first != head:
                self._add_bin(head, first, arena.system_bytes)
        for number, first in enumerate(arena.fastbins):
            self._add_fastbin(first, (number + 2) * 16, arena.system_bytes)
        self.bytes = sum(self._sizes.values())
        self.cost = most - self._left
        if self.has_changed and self.incomplete is None:
            self.incomplete = _CHANGES

    def whole_pages(self) -> Iterator[Span]:
        """The numbers of the whole pages in them, from the first to below the last: what malloc_trim(3) can give back."""
        for at, size in self._sizes.items():
            if size > PAGE_BYTES:
                yield -(-(at + _LINKS_BYTES) // PAGE_BYTES), (at + size) // PAGE_BYTES

    def _add_top(self, arena: Arena) -> None:
        """Add the chunk at the end of the arena."""
        for _ in range(_MOST_READS):
            top = int.from_bytes(self._memory.part(arena.top_at, 8), "little")
            size = int.from_bytes(self._memory.part(top + 8, 8), "little") & ~_FLAGS
            if _is_size(size) and size <= arena.system_bytes:
                self.top_bytes = size
                self._add([(top, size)])
                return
        self.has_changed = True
        self.incomplete = "the last block of an arena cannot be read"

    def _add_bin(self, head: int, first: int, most_bytes: int) -> None:
        """Walk a doubly linked list; where it has changed meanwhile, go back to a chunk that is still in it.

        What has more than `most_bytes` has left the list, or goes round in a circle.
        """
        path: list[tuple[int, int]] = []  # chunks, and their sizes
        longest: list[tuple[int, int]] = []
        at, before, left, size, repairs = first, head, most_bytes, 0, 0
        while at != head and len(path) < self._left:
            size, following, previous = self._chunk(at, alone=size >= PAGE_BYTES)
            if previous == before and size <= left and _is_size(size):
                path.append((at, size))
                before, at = at, following
                left -= size
                continue
            self._repairs_left -= 1
            self.has_changed = True
            repairs += 1
            if len(path) > len(longest):
                longest = path.copy()
            if repairs > _MOST_READS or self._repairs_left < 0:
                self._is_cut(at)
                break
            at = self._again(path, head)
            before = path[-1][0] if path else head
            left = most_bytes - sum([each for _, each in path])
        else:
            longest = path
            if at != head:
                self.incomplete = "it has too many free blocks to read them all"
        self._add(longest)

    def _add_fastbin(self, first: int, size: int, most_bytes: int) -> None:
        """Walk a singly linked list, whose pointers are mangled by their own addresses since 2.32 (PROTECT_PTR)."""
        path: list[tuple[int, int]] = []
        at, chunk = first, self._chunk(first) if first else _NONE
        while at and len(path) < self._left:
            found, link, _ = chunk
            if found != size or len(path) * size >= most_bytes:
                self._is_cut(at)
                break
            path.append((at, size))
            following = link ^ (at + 16 >> 12)
            chunk = self._chunk(following) if following else _NONE
            if following and chunk[0] != size:
                following, chunk = link, self._chunk(link) if link else _NONE
            at = following
        else:
            if at:
                self.incomplete = "it has too many free blocks to read them all"
        self._add(path)

    def _add(self, path: list[tuple[int, int]]) -> None:
        self._sizes.update(path)
        self._left -= len(path)

    def _chunk(self, at: int, *, alone: bool = False) -> tuple[int, int, int]:
        """Size, next and previous of a free chunk; (0, 0, 0) where it cannot be read. `alone`: no other one will be on its page."""
        number, begin = at // PAGE_BYTES, at % PAGE_BYTES
        if alone or begin > PAGE_BYTES - _CHUNK_BYTES:
            page, begin = self._memory.part(at, _CHUNK_BYTES), 0
            self._left -= _PAGE_COST
        elif number in self._pages:
            page = self._pages[number]
        else:
            if len(self._pages) >= _MOST_PAGES:
                self._pages.clear()
            page = self._pages[number] = self._memory.part(number * PAGE_BYTES, PAGE_BYTES)
            self._left -= _PAGE_COST
        if len(page) < _CHUNK_BYTES:
            return _NONE
        _, size, following, previous = _CHUNK.unpack_from(page, begin)
        return size & ~_FLAGS, following, previous

    def _is_cut(self, at: int) -> None:
        """Note why a list does not go on at an address."""
        is_read = bool(self._memory.part(at, _CHUNK_BYTES))
        self.incomplete = (
            _CHANGES if is_read else "its lists of free blocks are not wholly in memory: swapped out, or changed"
        )
        self.has_changed = True

    def _again(self, path: list[tuple[int, int]], head: int) -> int:
        """Take away the chunks at the end that are no longer in the list; where it goes on."""
        self._pages.clear()
        while path:
            size, following, previous = self._chunk(path[-1][0])
            if size == path[-1][1] and previous == (path[-2][0] if len(path) > 1 else head):
                return following
            path.pop()
        return int.from_bytes(self._memory.part(head + 16, 8), "little")


def _is_size(size: int) -> bool:
    return _LEAST <= size < _LARGEST and not size % _ALIGNED
