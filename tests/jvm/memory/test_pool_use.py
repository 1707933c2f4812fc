"""Use of memory pools by structures that no JVM of the tests has."""

from __future__ import annotations

import struct

import pytest

from opskit.jvm.memory.memory_service import Pool, Usage
from opskit.jvm.memory.pool_use import PoolUse
from opskit.jvm.memory.vmstructs import VmField, VmStructs
from opskit.jvm.memory.zgc_use import ZgcUse
from opskit.proc.memory import PAGE_BYTES, RecordedMemory

PAGE = 16
BASE = PAGE * PAGE_BYTES


def memory(words):
    """One page with these words by their offsets."""
    page = bytearray(PAGE_BYTES)
    for at, word in words.items():
        struct.pack_into("<Q", page, at, word)
    return RecordedMemory({PAGE: bytes(page)})


def structs(fields):
    return VmStructs({name: VmField(at >= BASE, at, "size_t") for name, at in fields.items()}, {}, {})


@pytest.mark.parametrize(
    ("first", "other", "last", "used"),
    [
        pytest.param(0, 0, 0, 40, id="nothing is free"),
        pytest.param(BASE, 0, 10, 30, id="free, and nothing was inserted between blocks"),
        pytest.param(BASE, 1 << 40, 10, 30, id="the place of the last insertion"),
        pytest.param(BASE, 10, 2, 30, id="JDK 11"),
    ],
)
def test_free_segments_of_a_code_heap(first, other, last, used):
    """They are not in use."""
    heap, pool = BASE + 1024, BASE + 2048
    words = {
        0: heap, 8: BASE, 2048 + 184: heap,
        1024: 7, 1032: 40, 1040: first, 1048: other, 1056: last, 1064: BASE, 1072: BASE + (100 << 7),
    }  # fmt: skip
    fields = {
        ("Universe", "_collectedHeap"): BASE + 8, ("CodeCache", "_heap"): BASE, ("CodeHeap", "_log2_segment_size"): 0,
        ("CodeHeap", "_memory"): 40, ("VirtualSpace", "_low"): 0, ("VirtualSpace", "_high"): 8,
    }  # fmt: skip
    none = Usage(0, 0, 0, 0)
    code = Pool(pool, "CodeCache", False, 5, 1 << 20, True, (), none, none, None, None, False, False)
    found = PoolUse(structs(fields), memory(words), {}, {}).usage(code)
    assert found == Usage(5, used << 7, 100 << 7, 1 << 20)


@pytest.mark.parametrize(
    ("used", "capacity", "expected"), [(3, 8, (3, 8)), (9, 8, (8, 8)), (3, 0, None), (3, 17, None)]
)
def test_zgc_of_jdk_11(used, capacity, expected):
    """The physical memory has the capacity; what makes no sense is unknown."""
    fields = {
        ("ZCollectedHeap", "_heap"): 8, ("ZHeap", "_page_allocator"): 16, ("ZPageAllocator", "_used"): 64,
        ("ZPageAllocator", "_physical"): 32, ("ZPhysicalMemoryManager", "_capacity"): 8, ("ZPhysicalMemoryManager", "_max_capacity"): 0,
    }  # fmt: skip
    found = ZgcUse(structs(fields), memory({24 + 64: used, 24 + 40: capacity, 24 + 32: 16}), BASE)
    assert found.part("ZHeap") == expected
