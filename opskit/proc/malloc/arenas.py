"""The arenas of glibc's malloc in another process's memory (malloc/malloc.c, malloc/arena.c; 64-bit).

struct malloc_state {                   struct heap_info {           at each multiple of 64 MiB; the first of an arena has its state behind it
  int mutex, flags, have_fastchunks;      mstate ar_ptr;
  mchunkptr fastbinsY[10];                heap_info *prev;
  mchunkptr top, last_remainder;          size_t size;               in use, from the heap's begin
  mchunkptr bins[254];                    size_t mprotect_size;      was in use once
  unsigned binmap[4];
  mstate next, next_free;               struct malloc_chunk {
  size_t attached_threads;                size_t prev_size, size;    the low 3 bits: in use before, mmapped, not of the main arena
  size_t system_mem, max_system_mem;      chunk *fd, *bk;            where it is free
}                                       }

The last bin is never used and refers to itself: its place gives that of all other fields, in each version since 2.22. The arenas
are in a ring by `next`; what does not lead back to its begin is no arena. Tried with 2.31, 2.36, 2.41 and 2.43, which has no fastbins.
"""

from __future__ import annotations

import struct
from itertools import islice
from typing import TYPE_CHECKING

from opskit.proc.files.maps import HEAP_BYTES
from opskit.proc.memory import PAGE_BYTES
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.memory import Memory
    from opskit.proc.spans import Span

STATE_BYTES = 2304
_WORDS = struct.Struct(f"<{STATE_BYTES // 8}Q")
_BIN_WORDS, _MAP_WORDS, _FASTBINS = 254, 2, 10
_HEAD_WORDS = (14, 3, 13)  # before the bins: since 2.27, since 2.43 (without fastbins), up to 2.26
_MOST_ARENAS, _MOST_VISITED, _ADDRESSES, _MOST_PLACES = 8192, 1 << 14, 1 << 47, 1 << 15
_HEAP = struct.Struct("<4Q")


class Arena(NamedTuple):
    """An arena at an address. `top_at`: where the pointer to its last chunk is; `bins`: (address of the list's head, first chunk).

    `fastbins`: first chunks by size. Sizes in bytes.
    """

    at: int
    top_at: int
    bins: tuple[tuple[int, int], ...]
    fastbins: tuple[int, ...]
    next: int
    system_bytes: int


class Heap(NamedTuple):
    """A part of an arena: 64 MiB of addresses, of which `size_bytes` are in use."""

    start: int
    arena: int
    size_bytes: int


def parse_arena(data: bytes, at: int) -> Arena | None:
    """A struct malloc_state by its bytes; None where they are none."""
    words = _WORDS.unpack(data) if len(data) == _WORDS.size else ()
    # The last pair of words that refers to itself as a bin does: a bin's address is that of a chunk whose fd is the first word.
    last = next(
        (n for n in range(len(words) - 10, _BIN_WORDS, -1) if words[n] == words[n + 1] == at + 8 * n - 16), None
    )
    if last is None:
        return None
    first = last + 2 - _BIN_WORDS
    behind = last + 2 + _MAP_WORDS
    following = words[behind]
    system_bytes, most_bytes = words[behind + 3 : behind + 5]
    if first not in _HEAD_WORDS or not following or not system_bytes <= most_bytes < _ADDRESSES:
        return None
    fast = first - 2 - (_FASTBINS if first > _FASTBINS else 0)
    bins = tuple((at + 8 * n - 16, words[n]) for n in range(first, last, 2))
    return Arena(at, at + 8 * (first - 2), bins, words[fast : first - 2], following, system_bytes)


class Rings:
    """Follows rings of arenas: so many arenas in all, however many begins are tried."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._left = memory, _MOST_VISITED

    def read(self, begin: int) -> list[Arena]:
        """The arenas from one on, in the order of their ring; empty where it does not return to its begin."""
        found: dict[int, Arena] = {}
        at = begin
        while at not in found and len(found) < _MOST_ARENAS and self._left > 0:
            self._left -= 1
            arena = None if at % 8 else parse_arena(self._memory.read(at, STATE_BYTES), at)
            if arena is None:
                return []
            found[at] = arena
            at = arena.next
        return list(found.values()) if found and at == begin else []


def find_main_arena(memory: Memory, start: int, end: int) -> list[Arena]:
    """The ring of arenas that begins in these addresses, which are libc's data; empty where there is none."""
    pages = (memory.read(at, PAGE_BYTES).ljust(PAGE_BYTES, b"\0") for at in range(start, end, PAGE_BYTES))
    words = struct.unpack(f"<{(end - start) // 8}Q", b"".join(pages))
    rings = Rings(memory)
    for n in range(_BIN_WORDS, len(words) - 2):
        here = start + 8 * n - 16
        if words[n] == words[n + 1] == here and words[n + 2] != here + 16:  # the last empty bin in a row
            for head_words in _HEAD_WORDS:
                ring = rings.read(start + 8 * (n + 2 - _BIN_WORDS - head_words))
                if ring:
                    return ring
    return []


def heaps_in(memory: Memory, spans: Iterable[Span]) -> list[Heap]:
    """What looks like heaps in parts of readable mappings, which may have been merged with their neighbours. Proven by `of_arenas`.

    Where there are too many places (AddressSanitizer maps 14 TiB), those in large parts are left out.
    """
    parts = sorted(spans, key=lambda span: span[1] - span[0])
    places = (at for start, end in parts for at in range(-(-start // HEAP_BYTES) * HEAP_BYTES, end, HEAP_BYTES))
    found = (heap_at(memory, at) for at in islice(places, _MOST_PLACES))
    return [heap for heap in found if heap is not None]


def heap_at(memory: Memory, at: int) -> Heap | None:
    """The heap at a multiple of 64 MiB, if there is what looks like one."""
    data = memory.read(at, _HEAP.size)
    if len(data) < _HEAP.size:
        return None
    arena, before, size, writable = _HEAP.unpack(data)
    is_heap = not before % HEAP_BYTES and not size % PAGE_BYTES and 0 < size <= writable <= HEAP_BYTES
    return Heap(at, arena, size) if is_heap and arena and not arena % 8 else None


def of_arenas(heaps: Iterable[Heap], arenas: Iterable[Arena]) -> list[Heap]:
    """The heaps that belong to one of these arenas."""
    known = {arena.at for arena in arenas}
    return [heap for heap in heaps if heap.arena in known]


def arena_spans(memory: Memory, spans: Iterable[Span]) -> list[Span]:
    """The addresses of all heaps but the main arena's, in these parts of readable mappings; proven by a ring of arenas."""
    heaps = heaps_in(memory, spans)
    ring = ring_of(memory, heaps)
    return [(heap.start, heap.start + HEAP_BYTES) for heap in of_arenas(heaps, ring)]


def ring_of(memory: Memory, heaps: Iterable[Heap]) -> list[Arena]:
    """All arenas, by the first heap whose arena leads back to itself; empty where there is none."""
    rings = Rings(memory)
    return next((ring for heap in heaps if (ring := rings.read(heap.arena))), [])
