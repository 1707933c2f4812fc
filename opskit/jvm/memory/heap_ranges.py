"""Where the Java heap of a JVM is, and what its collector keeps beside it: card table, block offset table, mark bitmaps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.proc.memory import PAGE_BYTES, u64
from opskit.proc.spans import merged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.files.smaps import Region
    from opskit.proc.memory import Memory
    from opskit.proc.spans import Span

_ADDRESSES = 1 << 47
_ZGC_FILE = re.compile(r"/(?:memfd:)?java_heap(?:\.[0-9]+)?")  # gc/z/zPhysicalMemoryBacking_linux.cpp


def heap_address(structs: VmStructs, memory: Memory) -> int:
    """The address of the CollectedHeap; 0: a JVM that is starting. Raises NotSupported."""
    return u64(memory, structs.at(("Universe", "_collectedHeap"))) or 0


def heap_spans(structs: VmStructs, memory: Memory, regions: Sequence[Region]) -> list[Span]:
    """What is reserved for the Java heap; with ZGC every mapping of its file. Raises NotSupported."""
    spans = [(each.start, each.end) for each in regions if _ZGC_FILE.search(each.name)]
    reserved = mem_region(structs, memory, heap_address(structs, memory) + structs.at(("CollectedHeap", "_reserved")))
    if reserved is not None and any(each.start < reserved[1] and each.end > reserved[0] for each in regions):
        spans.append(reserved)
    return merged(spans)


def mem_region(structs: VmStructs, memory: Memory, address: int) -> Span | None:
    """The addresses of a MemRegion; None where it is empty or makes no sense."""
    start = u64(memory, address + structs.at(("MemRegion", "_start")))
    words = u64(memory, address + structs.at(("MemRegion", "_word_size")))
    if not start or not words or start % PAGE_BYTES or start >= _ADDRESSES or words >= _ADDRESSES // 8:
        return None
    return start, start + 8 * words
