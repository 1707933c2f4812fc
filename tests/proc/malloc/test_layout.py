"""glibc's structures as bytes: what they must look like, and damage to them."""

from __future__ import annotations

import random
import struct

from opskit.proc.malloc.arenas import (
    Heap,
    Rings,
    arena_spans,
    find_main_arena,
    heaps_in,
    of_arenas,
    parse_arena,
    ring_of,
)
from opskit.proc.malloc.chunks import ChunkReader
from opskit.proc.memory import PAGE_BYTES, RecordedMemory
from opskit.proc.pagemap import PresentMemory

DATA, MIB = 0x7F0000200000, 1 << 20
HEAP = 0x7F0004000000


class Pages(RecordedMemory):
    """Pages that are given as bytes, all of them present."""

    read_anew = RecordedMemory.read

    def forget(self):
        """It does not change."""

    def present(self, start, end):
        return bytes(128 if page in self.pages else 0 for page in range(start // PAGE_BYTES, end // PAGE_BYTES))


def memory(*parts):
    """Memory with some bytes at some addresses."""
    pages = {}
    for address, data in parts:
        for at in range(len(data)):
            page, offset = divmod(address + at, PAGE_BYTES)
            pages.setdefault(page, bytearray(PAGE_BYTES))[offset] = data[at]
    recorded = Pages({page: bytes(data) for page, data in pages.items()})
    return PresentMemory(recorded, recorded)


LAYOUTS = [(2, 10), (1, 10), (1, 0)]  # since 2.27, up to 2.26, since 2.43


def state(at, following, system=132 << 10, layout=LAYOUTS[0]):
    """A struct malloc_state whose bins are all empty; `layout`: words before the fastbins, and of them."""
    words = [0] * sum(layout) + [at + 96, 0]
    first = len(words)
    words += [at + 8 * (first + n - n % 2) - 16 for n in range(254)]
    words += [0, 0, following, 0, 1, system, system]
    return struct.pack(f"<{len(words)}Q", *words).ljust(2304, b"\0")


def test_an_arena():
    """The fields are found by the last bin, whatever is before the bins."""
    for layout in LAYOUTS:
        arena = parse_arena(state(DATA, HEAP, layout=layout), DATA)
        assert (arena.next, arena.system_bytes, len(arena.fastbins), len(arena.bins)) == (
            HEAP,
            132 << 10,
            layout[1],
            126,
        )
        assert arena.top_at == DATA + 8 * sum(layout)
        assert all(head == first for head, first in arena.bins)


def test_no_arena():
    """Zeros, cut short, or sizes that make no sense."""
    good = state(DATA, HEAP)
    for data in (
        bytes(2304),
        good[:2000],
        good.replace((132 << 10).to_bytes(8, "little"), b"\xff" * 8),
        state(DATA, 0),
    ):
        assert parse_arena(data, DATA) is None
    assert parse_arena(good, DATA + 8) is None  # its bins refer to another address


def test_a_ring_must_return():
    """A heap in which one arena's pointer leads elsewhere proves nothing."""
    ring = memory((DATA, state(DATA, HEAP + 48)), (HEAP + 48, state(HEAP + 48, DATA)))
    assert [arena.at for arena in Rings(ring).read(DATA)] == [DATA, HEAP + 48]
    broken = memory((DATA, state(DATA, HEAP + 48)), (HEAP + 48, state(HEAP + 48, HEAP + 48)))
    assert Rings(broken).read(DATA) == []
    assert Rings(memory()).read(DATA) == []


def test_the_main_arena_in_libcs_data():
    """It is found wherever it is in the data, in each layout."""
    for layout in LAYOUTS:
        at = DATA + 0xC60
        found = find_main_arena(memory((at, state(at, at, layout=layout))), DATA, DATA + 2 * PAGE_BYTES)
        assert [arena.at for arena in found] == [at]
    assert find_main_arena(memory((DATA, b"\1" * 8000)), DATA, DATA + 2 * PAGE_BYTES) == []


def test_heaps_also_in_the_middle_of_a_mapping():
    """The kernel merges a heap with its neighbour: each boundary of 64 MiB is looked at, and only known arenas count."""
    heap = struct.pack("<4Q", HEAP + 48, 0, 4 * MIB, 8 * MIB)
    there = memory((HEAP, heap), (HEAP + 48, state(HEAP + 48, DATA)), (DATA, state(DATA, HEAP + 48)))
    found = heaps_in(there, [(HEAP - MIB, HEAP + 4 * MIB)])
    assert [(each.start, each.size_bytes) for each in found] == [(HEAP, 4 * MIB)]
    assert of_arenas(found, Rings(there).read(DATA)) == found
    assert of_arenas(found, []) == []
    looks_alike = memory((HEAP, struct.pack("<4Q", HEAP + 48, 0, 4 * MIB + 1, 8 * MIB)))
    assert heaps_in(looks_alike, [(HEAP, HEAP + MIB)]) == []


def chunk(size, flags=2):
    """The header of a chunk."""
    return struct.pack("<QQ", 0, size | flags)


def test_blocks_in_a_row_and_behind_something_else():
    """They follow each other; what is before them is skipped page by page."""
    size = 40 * PAGE_BYTES
    start, end = DATA, DATA + 200 * PAGE_BYTES
    first, second, third = DATA + 50 * PAGE_BYTES, DATA + 90 * PAGE_BYTES, DATA + 150 * PAGE_BYTES
    others = [(DATA + page * PAGE_BYTES, b"\2\2\2\2\2\2\2\2\2\2") for page in range(50)]
    there = memory(*others, (first, chunk(size)), (second, chunk(size)), (third, chunk(size)))
    found = ChunkReader(there, 1000).find([(start, end)])
    assert found == [(first, first + size), (second, second + size), (third, third + size)]


def test_blocks_of_glibc_2_43():
    """The size in the header is without its own 16 bytes."""
    size = 40 * PAGE_BYTES
    there = memory((DATA + PAGE_BYTES, chunk(size - 16)), (DATA, b"x" * 16))
    assert ChunkReader(there, 100).find([(DATA, DATA + 60 * PAGE_BYTES)]) == [
        (DATA + PAGE_BYTES, DATA + PAGE_BYTES + size)
    ]


def test_no_blocks():
    """A chunk of an arena, one that is longer than its mapping, one of a page, and no size at all."""
    end = DATA + 20 * PAGE_BYTES
    for header in (
        chunk(8 * PAGE_BYTES, 7),
        chunk(21 * PAGE_BYTES),
        chunk(PAGE_BYTES),
        chunk(0),
        chunk(8 * PAGE_BYTES + 16),
    ):
        assert ChunkReader(memory((DATA, header)), 1000).find([(DATA, end)]) == []


def test_a_bounded_search():
    """A large mapping of something else costs no more than is allowed; the first block of another is found all the same."""
    other = DATA + 600 * PAGE_BYTES
    there = memory(*[(DATA + page * PAGE_BYTES, b"x" * 16) for page in range(500)], (other, chunk(4 * PAGE_BYTES)))
    reader = ChunkReader(there, 64)
    gaps = [(DATA, DATA + 500 * PAGE_BYTES), (other, other + 4 * PAGE_BYTES)]
    assert reader.find(gaps) == [(other, other + 4 * PAGE_BYTES)]


def test_damaged_arenas():
    """Any bytes: never an error, never an arena whose parts lie outside of its numbers."""
    randomly = random.Random(17)  # noqa: S311
    for _ in range(500):
        data = bytearray(state(DATA, DATA))
        for _ in range(randomly.randrange(1, 30)):
            data[randomly.randrange(len(data))] = randomly.randrange(256)
        there = memory((DATA, bytes(data)))
        for arena in Rings(there).read(DATA):
            assert arena.at == DATA
        find_main_arena(there, DATA, DATA + PAGE_BYTES)
        heaps_in(there, [(DATA, DATA + 128 * MIB)])


def test_arenas_by_their_heaps():
    """All heaps of a ring, found by any of them; none where the ring is broken."""
    heap = struct.pack("<4Q", HEAP + 48, 0, 4 * MIB, 8 * MIB)
    good = memory((HEAP, heap), (HEAP + 48, state(HEAP + 48, DATA)), (DATA, state(DATA, HEAP + 48)))
    assert arena_spans(good, [(HEAP, HEAP + MIB)]) == [(HEAP, HEAP + 64 * MIB)]
    broken = memory((HEAP, heap), (HEAP + 48, state(HEAP + 48, DATA)))
    assert arena_spans(broken, [(HEAP, HEAP + MIB)]) == []


class Endless:
    """Hostile memory: an arena at each address, and each leads to another one, without an end. `reads`: how often it was read."""

    def __init__(self, page=b""):
        self.page, self.reads = page, 0

    def read(self, address, size):
        self.reads += 1
        return self.page or state(address, address + 4096)


def test_rings_without_an_end(monkeypatch):
    """However many heaps there are and wherever they lead, so many arenas are read in all."""
    monkeypatch.setattr("opskit.proc.malloc.arenas._MOST_VISITED", 2000)
    there = Endless()
    assert ring_of(there, [Heap(HEAP, HEAP + 8 * number, MIB) for number in range(2000)]) == []
    assert there.reads <= 2000


def test_heaps_beside_a_sparse_mapping_of_terabytes():
    """Not each 64 MiB of it is read, and a heap of another mapping is found all the same."""
    there = Endless(struct.pack("<4Q", HEAP + 48, 0, 4 * MIB, 8 * MIB))
    found = heaps_in(there, [(HEAP, HEAP + (64 << 40)), (HEAP - 64 * MIB, HEAP - MIB)])
    assert there.reads < 50_000
    assert min(heap.start for heap in found) < HEAP
    assert max(heap.start for heap in found) > HEAP
