"""The segment map, blobs and the list of stubs in made-up memory. Real code caches: tests/jvm/unwind/test_java.py."""

from __future__ import annotations

import struct

import pytest

from opskit.errors import NotSupported
from opskit.jvm.memory.code_cache import CodeCache
from opskit.jvm.memory.stub_descs import read_stub_descs
from opskit.jvm.memory.vmstructs import VmField, VmStructs
from opskit.proc.memory import RecordedMemory

LIBJVM, HEAP, LOW, MAP, NAME = 0x7F00_0000_0000, 0x7F10_0000_0000, 0x7F20_0000_0000, 0x7F30_0000_0000, 0x7F40_0000_0000
SEGMENT, SEGMENTS = 128, 64
BLOB = LOW + 2 * SEGMENT + 16
FIELDS = {
    ("CodeCache", "_heap"): (True, LIBJVM + 8, "CodeHeap*"),
    ("CodeHeap", "_memory"): (False, 0, "VirtualSpace"),
    ("CodeHeap", "_segmap"): (False, 32, "VirtualSpace"),
    ("CodeHeap", "_log2_segment_size"): (False, 64, "int"),
    ("VirtualSpace", "_low_boundary"): (False, 0, "char*"),
    ("VirtualSpace", "_high_boundary"): (False, 8, "char*"),
    ("VirtualSpace", "_low"): (False, 16, "char*"),
    ("CodeBlob", "_name"): (False, 0, "const char*"),
    ("CodeBlob", "_size"): (False, 8, "int"),
    ("CodeBlob", "_code_offset"): (False, 12, "int"),
    ("CodeBlob", "_data_offset"): (False, 16, "int"),
    ("CodeBlob", "_frame_size"): (False, 20, "int"),
    ("CodeBlob", "_frame_complete_offset"): (False, 24, "int16_t"),
    ("StubRoutines", "_call_stub_return_address"): (True, LIBJVM + 0x100000, "address"),
}
STRUCTS = VmStructs(
    {name: VmField(*field) for name, field in FIELDS.items()}, {"HeapBlock": 16, "CodeBlob": 32}, {}, LIBJVM
)


class Memory(RecordedMemory):
    """Memory to write into."""

    def __init__(self):
        super().__init__({})

    def write(self, address, form, *values):
        data = struct.pack(form, *values)
        for at, byte in enumerate(data, address):
            page = self.pages.setdefault(at // 4096, bytearray(4096))
            page[at % 4096] = byte


@pytest.fixture
def memory():
    """One heap; in its segments 2 to 9 a blob of 8 words' frame, the others are free."""
    made = Memory()
    made.write(LIBJVM + 8, "<Q", HEAP)
    made.write(HEAP, "<4Q", LOW, LOW + SEGMENT * SEGMENTS, LOW, LOW)
    made.write(HEAP + 32, "<4Qi", MAP, MAP + SEGMENTS, MAP, MAP, 7)
    made.write(MAP, f"{SEGMENTS}B", *([255] * SEGMENTS))
    made.write(MAP + 2, "8B", 0, 1, 2, 3, 1, 2, 1, 1)  # some steps end at a segment that steps back again
    made.write(BLOB, "<Qiiiih", NAME, 1000, 64, 900, 8, 12)
    made.write(NAME, "8s", b"nmethod\0")
    made.write(LOW + SEGMENT * SEGMENTS, "B", 0)
    return made


def test_a_blob_is_found_from_every_pc(memory):
    """By steps back in the segment map; not before its code, behind it, and in free segments."""
    cache = CodeCache(STRUCTS, memory)
    assert (cache.low, cache.high) == (LOW, LOW + SEGMENT * SEGMENTS)
    blob = cache.find(BLOB + 64)
    assert blob[:7] == (BLOB, "nmethod", 1000, BLOB + 64, BLOB + 900, 64, 12)
    assert all(cache.find(pc) == blob for pc in range(BLOB + 64, BLOB + 901, 50))
    assert cache.find(BLOB + 63) is None
    assert cache.find(BLOB + 901) is None
    assert cache.find(LOW + 1) is None
    assert cache.find(LOW + 12 * SEGMENT) is None
    assert cache.find(LOW - 1) is None


@pytest.mark.parametrize("steps", [[1] * 8, [200] * 8, [0, 9, 9, 9, 9, 9, 9, 9]])
def test_a_damaged_segment_map(memory, steps):
    """Steps that go before the heap, or to a free segment, find nothing."""
    memory.write(MAP + 2, "8B", *steps)
    assert CodeCache(STRUCTS, memory).find(LOW + 9 * SEGMENT) is None


@pytest.mark.parametrize(
    ("at", "value"), [(8, -1), (8, 1 << 30), (12, -64), (12, 0), (12, 2000), (16, 10), (16, 1 << 20)]
)
def test_a_damaged_blob(memory, at, value):
    """Sizes and offsets that do not fit into each other."""
    memory.write(BLOB + at, "<i", value)
    assert CodeCache(STRUCTS, memory).find(BLOB + 100) is None


@pytest.mark.parametrize("frame", [-1, 1 << 28])
def test_an_impossible_frame_size(memory, frame):
    """It counts as unknown."""
    memory.write(BLOB + 20, "<i", frame)
    assert CodeCache(STRUCTS, memory).find(BLOB + 100).frame_bytes == 0


def test_no_heap_yet(memory):
    """A JVM that is starting has no code cache."""
    memory.write(LIBJVM + 8, "<Q", 0)
    with pytest.raises(NotSupported, match="still starting"):
        CodeCache(STRUCTS, memory)


def stubs(memory, count, last_next=0):
    """A list of so many stubs, each of 16 bytes, whose head is near the variables of StubRoutines."""
    begin = NAME + 4096
    memory.write(LIBJVM + 0x100000 + 64, "<Q", begin)
    memory.write(LIBJVM + 0x200000, "13s", b"StubRoutines\0")
    for number in range(count):
        address = begin + 64 * number
        following = address + 64 if number < count - 1 else last_next
        memory.write(
            address, "<5Q", following, LIBJVM + 0x200000, address + 40, BLOB + 16 * number, BLOB + 16 * number + 16
        )
        memory.write(address + 40, "8s", b"_fill%02d" % number)
    return read_stub_descs(STRUCTS, memory, LOW, LOW + SEGMENT * SEGMENTS)


def test_the_list_of_stubs(memory):
    """Each with its code and name."""
    found = stubs(memory, 20)
    assert len(found) == 20
    assert found[3] == (BLOB + 48, BLOB + 64, "fill03")


def test_a_list_without_an_end(memory):
    """A circle ends after so many items."""
    assert len(stubs(memory, 20, last_next=NAME + 4096)) == 4096


def test_many_lists_without_an_end(memory):
    """Words near the head that all lead into a circle: what is read of them is bounded."""
    for number in range(200):
        memory.write(LIBJVM + 0x100000 + 512 + 8 * number, "<Q", NAME + 4096 + 64 * (number % 20))
        memory.write(LIBJVM + 0x110000 + 8 * number, "<Q", NAME + 8192 + 64 * number)
        memory.write(NAME + 8192 + 64 * number, "<5Q", NAME + 4096, LIBJVM + 0x200000, NAME + 4136, BLOB, BLOB + 16)
    reads, read = [], memory.read
    memory.read = lambda address, size: reads.append(address) or read(address, size)
    assert len(stubs(memory, 20, last_next=NAME + 4096)) == 4096
    assert len(reads) < 200_000


def test_a_short_list(memory):
    """Words that only look like one are no list of stubs."""
    assert stubs(memory, 5) == []
