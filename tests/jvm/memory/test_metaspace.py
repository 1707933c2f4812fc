"""Lists of class loaders and of metaspace nodes in made-up memory, whole and torn. Real ones: test_ranges.py."""

from __future__ import annotations

import struct

import pytest

from opskit.errors import NotSupported
from opskit.jvm.memory.loaders import ClassSample, Loader, read_loaders, sample_classes
from opskit.jvm.memory.metaspace import cds_spans, class_space_span, metaspace_spans
from opskit.jvm.memory.vmstructs import VmField, VmStructs
from opskit.proc.files.smaps import Region, Usage
from opskit.proc.memory import RecordedMemory

LIBJVM, HEAD, DATA, NODES, CHUNKS = (
    0x7F00_0000_0000,
    0x7F00_0100_0000,
    0x7F10_0000_0000,
    0x7F20_0000_0000,
    0x7F30_0000_0000,
)
MIB = 1 << 20
FIELDS = {
    ("ClassLoaderDataGraph", "_head"): (True, HEAD, "ClassLoaderData*"),
    ("ClassLoaderData", "_next"): (False, 16, "ClassLoaderData*"),
    ("ClassLoaderData", "_klasses"): (False, 8, "Klass*"),
    ("ClassLoaderData", "_has_class_mirror_holder"): (False, 24, "bool"),
    ("Klass", "_next_link"): (False, 8, "Klass*"),
    ("Klass", "_layout_helper"): (False, 0, "jint"),
    ("InstanceKlass", "_constants"): (False, 16, "ConstantPool*"),
    ("InstanceKlass", "_methods"): (False, 24, "Array<Method*>*"),
    ("CompressedKlassPointers", "_base"): (True, HEAD + 8, "address"),
    ("MetaspaceObj", "_shared_metaspace_base"): (True, HEAD + 16, "void*"),
    ("MetaspaceObj", "_shared_metaspace_top"): (True, HEAD + 24, "void*"),
}
STRUCTS = VmStructs({name: VmField(*field) for name, field in FIELDS.items()}, {}, {}, LIBJVM)


class Memory(RecordedMemory):
    """Memory to write into."""

    def __init__(self):
        super().__init__({})

    def write(self, address, *words):
        for at, byte in enumerate(struct.pack(f"<{len(words)}Q", *words), address):
            self.pages.setdefault(at // 4096, bytearray(4096))[at % 4096] = byte

    def present(self, start, end):
        """As PageMap."""
        return bytes(128 * (page in self.pages) for page in range(start // 4096, -(-end // 4096)))


def region(start, end, permissions="rw-p", name="", rss=1 << 30):
    return Region(start, end, permissions, 0, 0, name, deleted=False, usage=Usage(rss))


@pytest.fixture
def memory():
    return Memory()


def loaders(memory, *chain):
    """Class loader data at multiples of 4 KiB, which refer to one another."""
    memory.write(HEAD, DATA)
    for number, following in enumerate(chain):
        memory.write(DATA + number * 4096, 0, 0, following, number % 2)


def test_class_loaders(memory):
    """All, the newest first; those of a single hidden class are marked."""
    loaders(memory, DATA + 4096, DATA + 8192, 0)
    found = read_loaders(STRUCTS, memory)
    assert found == [Loader(DATA, 0, False), Loader(DATA + 4096, 0, True), Loader(DATA + 8192, 0, False)]


@pytest.mark.parametrize("chain", [(DATA,), (DATA + 4096, DATA), (DATA + 4096,)], ids=["itself", "ring", "torn"])
def test_lists_of_class_loaders_without_an_end(memory, chain):
    """Unknown, after a bounded number of steps."""
    loaders(memory, *chain)
    assert read_loaders(STRUCTS, memory) is None
    assert read_loaders(STRUCTS, Memory()) is None
    with pytest.raises(NotSupported, match="ClassLoaderDataGraph::_head"):
        read_loaders(VmStructs({}, {}, {}), memory)


def test_a_ring_of_classes(memory):
    """Read a bounded number of times; addresses that cannot be read give nothing."""
    memory.write(DATA, 64, DATA, 0xDEAD0000, 0xDEAD1000)
    sample = sample_classes(STRUCTS, memory, [Loader(1, DATA, False)] * 1000)
    assert sample.klasses == {DATA}
    assert sample.tables == frozenset()


# The words of JDK 11: a chunk's size in words, next, previous, …, its node. A node's next, …, its VirtualSpace.
def chunk(memory, at, words, node):
    memory.write(at, words, 0, 0, 1, node, at + 64)


def node(memory, number, space, following=0):
    memory.write(NODES + number * 4096, following, 0, *space, *space, *space)


SPACES = [(CHUNKS + number * 4 * MIB, CHUNKS + number * 4 * MIB + 2 * MIB) for number in range(3)]
FREE = [(CHUNKS, CHUNKS + 64 * MIB)]


class Sample:
    """What metaspace_spans reads of a ClassSample."""

    def __init__(self, *data, tables=()):
        self.data, self.tables = frozenset(data), frozenset(tables)


def test_nodes_by_their_list(memory):
    """From a constant pool back to its chunk, from there to its node, and along the list."""
    chunk(memory, SPACES[0][0] + 65536, 8192, NODES)
    for number, following in enumerate((NODES + 4096, NODES + 8192, 0)):
        node(memory, number, SPACES[number], following)
    pool = SPACES[0][0] + 65536 + 5000
    memory.write(pool, 1)
    found = metaspace_spans(memory, memory, Sample(pool), [region(*FREE[0])], FREE)
    assert found == SPACES


def test_lists_of_nodes_that_are_torn(memory):
    """A ring ends; a node outside of free memory, or one that makes no sense, is left out."""
    chunk(memory, SPACES[0][0], 128, NODES)
    node(memory, 0, SPACES[0], NODES + 4096)
    node(memory, 1, SPACES[1], NODES)
    wanted = metaspace_spans(memory, memory, Sample(SPACES[0][0] + 100), [region(*FREE[0])], FREE)
    assert wanted == SPACES[:2]
    node(memory, 1, (0x1000, 0x5000), NODES + 8192)
    node(memory, 2, SPACES[2])
    found = metaspace_spans(memory, memory, Sample(SPACES[0][0] + 100), [region(*FREE[0])], FREE)
    assert found == SPACES[:1]


TABLE = LIBJVM + 0x500
UNIT = 4 * MIB


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({}, True),
        ({"word": TABLE + 8}, False),
        ({"at": 4}, False),
        ({"cut": 4096}, False),
        ({"start": 64 << 10}, True),
        ({"free": 1 * MIB}, False),
        ({"permissions": "rwxp"}, False),
    ],
    ids=["method", "no method", "not aligned", "not in granules", "a hole", "partly used", "code"],
)
def test_nodes_by_content(memory, change, wanted):
    """A node has a method or a constant pool in its first pages, and is committed in granules of 64 KiB."""
    base = CHUNKS + UNIT
    start = base + change.get("start", 0)
    memory.write(start + 8 * 100 + change.get("at", 0), change.get("word", TABLE))
    permissions = change.get("permissions", "rw-p")
    regions = [region(start, start + MIB + change.get("cut", 0), permissions), region(start + MIB, base + UNIT, "---p")]
    free = [(base, base + UNIT - change.get("free", 0))]
    found = metaspace_spans(memory, memory, Sample(tables=(TABLE,)), regions, free)
    assert found == ([(base, base + UNIT)] if wanted else [])


def test_memory_that_was_never_touched_is_not_read(memory):
    """A committed part without a page in memory has no known use."""
    regions = [region(CHUNKS, CHUNKS + UNIT)]
    assert metaspace_spans(memory, memory, Sample(tables=(TABLE,)), regions, [(CHUNKS, CHUNKS + UNIT)]) == []


@pytest.mark.parametrize(
    ("free", "base", "wanted"),
    [
        ((0x1000_0000, 0x5000_0000), 0, (0x1000_0000, 0x5000_0000)),
        ((0x0F00_0000, 0x7000_0000), 0x1000_0000, (0x1000_0000, 0x5000_0000)),
        ((0x0F80_0000, 0x7000_0000), 0x0800_0000, (0x1000_0000, 0x5000_0000)),
        ((0x2000_0000, 0x7000_0000), 0, None),
    ],
    ids=["exact", "at its base", "behind the archive", "elsewhere"],
)
def test_the_class_space(memory, free, base, wanted):
    """It is free memory with a class, as large as its flag says; it may touch other memory on both sides."""
    memory.write(HEAD + 8, base)
    flags = {"CompressedClassSpaceSize": 1 << 30}
    klasses = (0x9000_0000, 0x1000_1000)
    assert class_space_span(STRUCTS, memory, flags, klasses, [free]) == wanted
    assert class_space_span(STRUCTS, memory, {**flags, "UseCompressedClassPointers": False}, klasses, [free]) is None
    assert class_space_span(STRUCTS, memory, {}, klasses, [free]) is None


def test_archives(memory):
    """Mappings of *.jsa, and what HotSpot says is shared, without what is only reserved."""
    file, copy = region(DATA, DATA + MIB, name="/jdk/classes.jsa"), region(DATA + MIB, DATA + 2 * MIB)
    gap, other = region(DATA + 2 * MIB, DATA + 3 * MIB, "---p", rss=0), region(DATA + 3 * MIB, DATA + 4 * MIB)
    regions = [file, copy, gap, other]
    assert cds_spans(STRUCTS, memory, regions) == [(DATA, DATA + MIB)]
    memory.write(HEAD + 16, DATA, DATA + 3 * MIB)
    assert cds_spans(STRUCTS, memory, regions) == [(DATA, DATA + 2 * MIB)]


def test_a_sparse_mapping_of_terabytes():
    """Not each 4 MiB of it is searched for metaspace."""

    class Pages:
        asked = 0

        def present(self, start, end):
            self.asked += 1
            return b""

    pages, span = Pages(), (DATA, DATA + (8 << 40))
    region = Region(*span, "rw-p", 0, 0, "", False, Usage(4096))
    sample = ClassSample(frozenset(), frozenset(), frozenset((LIBJVM,)))
    assert metaspace_spans(Memory(), pages, sample, [region], [span]) == []
    assert pages.asked < 100_000
