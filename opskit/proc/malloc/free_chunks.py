"""Free memory inside glibc's arenas: the chunks in their bins, and what of it is still resident.

The lists change while they are read. A chunk counts where it points back to the one before, so the sum of a list that keeps changing is
too small, never too large. malloc_info(3) counts the same: the top chunk, bins and fastbins, but not what threads keep in their caches (tcache).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.proc.memory import PAGE_BYTES
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.proc.malloc.arenas import Arena
    from opskit.proc.pagemap import PresentMemory

_CHUNK = struct.Struct("<4Q")  # size of the one before if that is free, size and flags, next, previous
_FLAGS = 7
_LEAST, _ALIGNED = 32, 16
_LINKS_BYTES = 48  # of a free chunk: its sizes and links, which stay in memory
_MOST_REPAIRS, _MOST_READS = 400, 8
_LARGEST = 1 << 47
_MOST_PAGES = 16384
_PAGE_COST = 4  # to read a page, in chunks of pages that have been read


class Free(NamedTuple):
    """Free bytes of some arenas, those of their top chunks, and those on whole pages in memory. `incomplete`: why there may be more."""

    bytes: int
    top_bytes: int
    resident_bytes: int
    incomplete: str | None = None


def free_in(arenas: Sequence[Arena], memory: PresentMemory, most: int) -> Free | None:
    """The free memory of all arenas, the largest chunks, as many as the budget `most` lets read; None where the arenas make no sense."""
    found = _FreeChunks(memory, most)
    used = [arena for arena in arenas if arena.system_bytes]
    for arena in used:
        if not found.add_top(arena):
            return None
        found.add_bin(*arena.bins[0], arena.system_bytes)  # of all sizes: what was freed last
    for number in range(len(used[0].bins) - 1 if used else 0, 0, -1):
        for arena in used:
            found.add_bin(*arena.bins[number], arena.system_bytes)
    for arena in used:
        for number, first in enumerate(arena.fastbins):
            found.add_fastbin(first, (number + 2) * 16, arena.system_bytes)
    total = sum(found.sizes.values())
    if total > sum(arena.system_bytes for arena in used):
        return None
    return Free(total, found.top_bytes, found.resident_bytes(), found.incomplete)


class _FreeChunks:
    """Sums free chunks. Absent pages are not read."""

    def __init__(self, memory: PresentMemory, most: int) -> None:
        self._memory, self._left = memory, most
        self._pages: dict[int, bytes] = {}
        self._repairs_left = _MOST_REPAIRS
        self.sizes: dict[int, int] = {}  # address -> size: one that goes from list to list meanwhile counts once
        self.top_bytes = 0
        self.incomplete: str | None = None

    def resident_bytes(self) -> int:
        """How much of them is on whole pages that are in memory: what malloc_trim(3) can give back."""
        large = ((at, size) for at, size in self.sizes.items() if size > PAGE_BYTES)
        pages = ((-(-(at + _LINKS_BYTES) // PAGE_BYTES), (at + size) // PAGE_BYTES) for at, size in large)
        return sum(self._memory.resident_bytes(start, end) for start, end in pages if end > start)

    def add_top(self, arena: Arena) -> bool:
        """Add the chunk at the end of an arena; False where there is none."""
        for _ in range(_MOST_READS):
            top = int.from_bytes(self._memory.part(arena.top_at, 8), "little")
            size = int.from_bytes(self._memory.part(top + 8, 8), "little") & ~_FLAGS
            if _is_size(size) and size <= arena.system_bytes:
                self.top_bytes += size
                self._add([(top, size)])
                return True
        return False

    def add_bin(self, head: int, first: int, most_bytes: int) -> None:
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

    def add_fastbin(self, first: int, size: int, most_bytes: int) -> None:
        """Walk a singly linked list, whose pointers are mangled by their own addresses since 2.32 (PROTECT_PTR)."""
        at = first
        path: list[tuple[int, int]] = []
        while at and len(path) < self._left:
            found, link, _ = self._chunk(at)
            if found != size or len(path) * size >= most_bytes:
                self._is_cut(at)
                break
            path.append((at, size))
            plain = link ^ (at + 16 >> 12)
            at = plain if not plain % _ALIGNED else link
        else:
            if at:
                self.incomplete = "it has too many free blocks to read them all"
        self._add(path)

    def _add(self, path: list[tuple[int, int]]) -> None:
        self.sizes.update(path)
        self._left -= len(path)

    def _chunk(self, at: int, *, alone: bool = False) -> tuple[int, int, int]:
        """Size, next and previous of a free chunk; (0, 0, 0) where it cannot be read. `alone`: no other one will be on its page."""
        number, begin = divmod(at, PAGE_BYTES)
        page = self._pages.get(number)
        if alone or begin > PAGE_BYTES - _CHUNK.size:
            page, begin = self._memory.part(at, _CHUNK.size), 0
            self._left -= _PAGE_COST
        elif page is None:
            if len(self._pages) >= _MOST_PAGES:
                self._pages.clear()
            page = self._pages[number] = self._memory.part(number * PAGE_BYTES, PAGE_BYTES)
            self._left -= _PAGE_COST
        if len(page) < _CHUNK.size:
            return 0, 0, 0
        _, size, following, previous = _CHUNK.unpack_from(page, begin)
        return size & ~_FLAGS, following, previous

    def _is_cut(self, at: int) -> None:
        """Note why a list does not go on at an address."""
        is_read = bool(self._memory.part(at, _CHUNK.size))
        why = "change while they are read" if is_read else "are not in memory as a whole: swapped out, or changed"
        self.incomplete = f"its lists of free blocks {why}"

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
