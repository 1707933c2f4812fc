"""How many thread stacks still fit into a budget of address space.

A thread of glibc maps its stack and a guard page. Its first malloc() maps an arena of 64 MiB, until there are 8 x CPUs of them
(malloc/arena.c): glibc maps 128 MiB, keeps the aligned half and unmaps the rest; where 128 MiB no longer fit, it maps
64 MiB and keeps them only if they are aligned. That depends on where the kernel places them, so this module follows the free
ranges from the highest down as the kernel does (mm/mmap.c, arch_get_unmapped_area_topdown; mm/huge_memory.c aligns
multiples of 2 MiB).
"""

from __future__ import annotations

from opskit.proc.files.maps import HEAP_BYTES
from opskit.records import NamedTuple

_HUGE_PAGE = 2 << 20


class ThreadCost(NamedTuple):
    """What one more thread takes: bytes of stack and of guard, and mappings.

    `arenas_left`: how many of the next threads map an arena of their own, after `arenas_free` threads that get the arena
    of an ended thread. `cached`: stacks of ended threads, which glibc reuses first.
    """

    stack_bytes: int
    guard_bytes: int
    maps: int
    arenas_left: int
    cached: int = 0
    arenas_free: int = 0

    @property
    def mapped_bytes(self) -> int:
        """Address space of the stack with its guard."""
        return self.stack_bytes + self.guard_bytes


def threads_in_address_space(budget_bytes: int, gaps: tuple[tuple[int, int], ...], cost: ThreadCost) -> int:
    """How many threads start until this much address space is used up; `gaps`: its free ranges, highest first."""
    # A range that holds no stack stays as it is.
    space = _Space([gap for gap in gaps if gap[1] - gap[0] >= cost.mapped_bytes], budget_bytes)
    started, arenas = 0, cost.arenas_left
    while arenas and space.left >= HEAP_BYTES:
        if started >= cost.cached and space.map(cost.mapped_bytes) is None:
            return started
        started += 1
        if started > cost.arenas_free:
            arenas -= space.map_arena()
    rest = max(space.left, 0) // cost.mapped_bytes
    return max(started, cost.cached) + rest


def threads_in_maps(free_maps: int, cost: ThreadCost) -> int:
    """How many threads start until the mappings that are left are used up; an arena takes two."""
    dear = min(cost.arenas_left, max(free_maps, 0) // (cost.maps + 2))
    return cost.cached + dear + max(0, free_maps - dear * (cost.maps + 2)) // cost.maps


class _Space:
    def __init__(self, gaps: list[tuple[int, int]], left: int) -> None:
        self.gaps = gaps
        self.left = left
        self.beside: int | None = None  # glibc's aligned_heap_area: where the next arena is tried first

    def map(self, size: int) -> int | None:
        """The address where the kernel puts a new mapping; None where it does not fit."""
        if size <= self.left and size % _HUGE_PAGE == 0:
            for index, (start, end) in enumerate(self.gaps):
                if end - start >= size + _HUGE_PAGE:
                    return self._take(index, (end - size) // _HUGE_PAGE * _HUGE_PAGE, size)
        return self._map_anywhere(size)

    def _map_anywhere(self, size: int) -> int | None:
        fits = (index for index, (start, end) in enumerate(self.gaps) if end - start >= size)
        index = next(fits, None) if size <= self.left else None
        return None if index is None else self._take(index, self.gaps[index][1] - size, size)

    def map_arena(self) -> bool:
        """Map what a thread's first malloc() does; whether it got an arena."""
        if self.beside is not None:
            at, self.beside = self._map_near(self.beside, HEAP_BYTES), None
            if self._keeps_aligned(at):
                return True
        at = self.map(2 * HEAP_BYTES)
        if at is None:
            return self._keeps_aligned(self.map(HEAP_BYTES))
        aligned = -(-at // HEAP_BYTES) * HEAP_BYTES
        self._free(at, aligned)
        self._free(aligned + HEAP_BYTES, at + 2 * HEAP_BYTES)
        if aligned == at:
            self.beside = at + HEAP_BYTES
        return True

    def _keeps_aligned(self, at: int | None) -> bool:
        """Whether glibc keeps a new heap: only at a multiple of its size."""
        if at is not None and at % HEAP_BYTES:
            self._free(at, at + HEAP_BYTES)
            return False
        return at is not None

    def _map_near(self, at: int, size: int) -> int | None:
        """With a hint: there if it is free, else anywhere, and not aligned to huge pages."""
        found = (index for index, (start, end) in enumerate(self.gaps) if start <= at and at + size <= end)
        index = next(found, None) if size <= self.left else None
        return self._map_anywhere(size) if index is None else self._take(index, at, size)

    def _take(self, index: int, at: int, size: int) -> int:
        start, end = self.gaps[index]
        self.gaps[index : index + 1] = [gap for gap in ((at + size, end), (start, at)) if gap[0] < gap[1]]
        self.left -= size
        return at

    def _free(self, start: int, end: int) -> None:
        if start == end:
            return
        self.left += end - start
        merged: list[tuple[int, int]] = []
        for low, high in sorted([*self.gaps, (start, end)], reverse=True):
            if merged and high == merged[-1][0]:
                merged[-1] = (low, merged[-1][1])
            else:
                merged.append((low, high))
        self.gaps = merged
