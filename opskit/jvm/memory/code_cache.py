"""HotSpot's code cache: compiled methods, stubs and the interpreter (src/hotspot/share/code/codeCache.hpp, memory/heap.hpp).

A heap consists of segments. Its segment map has one byte for each: 255 where it is free, 0 at the first of a block, else how many
to step back to reach that one. A block has a header, and a CodeBlob behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.jvm.memory.layout import find_scalar, scalar
from opskit.proc.memory import c_string, i32, u64
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_FREE = 255
_MOST_STEPS = 256  # back in the segment map; a step is at most 254 segments, and HotSpot merges its steps
_MOST_HEAPS = 16
_MOST_BLOB_BYTES = 1 << 27
_MOST_FRAME_BYTES = 1 << 20


class CodeBlob(NamedTuple):
    """A block of generated code. `begin`, `end`: of its code; `frame_complete`: bytes from `begin` until its frame is built.

    `frame_bytes`: of its frame with the return address, 0 for none. `raw`: the header as it was read; it does not change.
    """

    header: int
    name: str
    size: int
    begin: int
    end: int
    frame_bytes: int
    frame_complete: int
    raw: bytes


class CodeHeap(NamedTuple):
    """A heap: reserved from `low` up to `high`. `segments_at`: its segment map, reserved up to `segments_end`; both are the same where that is unknown.

    `segment_shift`: log2 of a segment's bytes.
    """

    low: int
    high: int
    segments_at: int
    segments_end: int
    segment_shift: int


def read_code_heaps(structs: VmStructs, memory: Memory) -> list[CodeHeap]:
    """The heaps of the code cache; none in a JVM that is starting. Raises NotSupported for an unknown layout."""
    found = (_read_heap(structs, memory, address) for address in heap_addresses(structs, memory))
    return [heap for heap in found if heap is not None]


def heap_addresses(structs: VmStructs, memory: Memory) -> list[int]:
    """The addresses of the CodeHeaps. Raises NotSupported."""
    listed = structs.find(("CodeCache", "_heaps"))
    if listed is None:  # JDK 8 has one heap
        return [u64(memory, structs.at(("CodeCache", "_heap"))) or 0]
    array = u64(memory, listed) or 0
    count_at = structs.at(("GrowableArrayBase", "_len"), ("GenericGrowableArray", "_len"))
    count = i32(memory, array + count_at) or 0
    data = u64(memory, array + structs.at(("GrowableArray<int>", "_data"))) or 0
    return [u64(memory, data + 8 * number) or 0 for number in range(min(count, _MOST_HEAPS))]


def _read_heap(structs: VmStructs, memory: Memory, address: int) -> CodeHeap | None:
    space, segments = (structs.at(("CodeHeap", field)) for field in ("_memory", "_segmap"))
    low, high = (
        u64(memory, address + space + structs.at(("VirtualSpace", field)))
        for field in ("_low_boundary", "_high_boundary")
    )
    segments_at, segments_end = (
        u64(memory, address + segments + structs.at(("VirtualSpace", field))) for field in ("_low", "_high_boundary")
    )
    shift = i32(memory, address + structs.at(("CodeHeap", "_log2_segment_size")))
    if not address or not low or not high or not segments_at or shift is None:
        return None
    return (
        CodeHeap(low, high, segments_at, segments_end or segments_at, shift)
        if low < high and 3 <= shift <= 16
        else None
    )


class CodeCache:
    """The code cache of one JVM: from `low` up to `high`."""

    def __init__(self, structs: VmStructs, memory: Memory) -> None:
        """Raise NotSupported where the JVM has no code cache yet, or an unknown layout."""
        self.memory = memory
        self._block_bytes = structs.size("HeapBlock")
        self._header_bytes = structs.size("CodeBlob")
        self._name, self._size, self._frame, self._complete = (
            scalar(structs, ("CodeBlob", field))
            for field in ("_name", "_size", "_frame_size", "_frame_complete_offset")
        )
        self._begin, self._end = (find_scalar(structs, ("CodeBlob", field)) for field in ("_code_begin", "_code_end"))
        self._begin_offset = find_scalar(structs, ("CodeBlob", "_code_offset"))
        self._end_offset = scalar(structs, ("CodeBlob", "_data_offset"))
        self._names: dict[int, str] = {}
        self._heaps = read_code_heaps(structs, memory)
        if not self._heaps or (self._begin or self._begin_offset) is None:
            raise NotSupported("the JVM has no code cache: it is still starting, or its layout is unknown")
        self.low, self.high = min(heap.low for heap in self._heaps), max(heap.high for heap in self._heaps)

    def find(self, pc: int) -> CodeBlob | None:
        """The blob whose code is at the pc; None for free or unreadable memory."""
        heap = next((heap for heap in self._heaps if heap.low <= pc < heap.high), None)
        if heap is None:
            return None
        segment = (pc - heap.low) >> heap.segment_shift
        for _ in range(_MOST_STEPS):
            step = self.memory.read(heap.segments_at + segment, 1)
            if not step or step[0] == _FREE or step[0] > segment:
                return None
            if step[0] == 0:
                blob = self.read(heap.low + (segment << heap.segment_shift) + self._block_bytes)
                return blob if blob is not None and blob.begin <= pc <= blob.end else None
            segment -= step[0]
        return None

    def read(self, header: int) -> CodeBlob | None:
        """The blob whose header is there; None where it makes no sense."""
        data = self.memory.read(header, self._header_bytes)
        if len(data) < self._header_bytes:
            return None
        if self._begin is not None and self._end is not None:
            begin, end = self._begin.of(data), self._end.of(data)
        else:
            begin = header + (self._begin_offset.of(data) if self._begin_offset is not None else 0)
            end = header + self._end_offset.of(data)
        size, frame = self._size.of(data), self._frame.of(data) * 8
        if not 0 < size <= _MOST_BLOB_BYTES or not header < begin <= end <= header + size:
            return None
        if not 0 <= frame <= _MOST_FRAME_BYTES:
            frame = 0
        name = self._text(self._name.of(data))
        return CodeBlob(header, name, size, begin, end, frame, self._complete.of(data), data)

    def _text(self, address: int) -> str:
        """The name of a blob: a constant of libjvm, or of a stub that lives as long as the JVM."""
        name = self._names.get(address)
        if name is None:
            found = c_string(self.memory, address)
            name = found.decode("latin-1") if found else ""
            if len(self._names) < 4096:
                self._names[address] = name
        return name
