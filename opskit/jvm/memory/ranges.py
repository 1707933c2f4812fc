"""What the addresses of a JVM are used for, by HotSpot's own structures in its memory. Nothing is sent to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.jvm.memory.code_cache import read_code_heaps
from opskit.jvm.memory.flags import read_flags
from opskit.jvm.memory.gc_ranges import COLLECTOR_FLAGS, Collector
from opskit.jvm.memory.heap_ranges import heap_spans
from opskit.jvm.memory.loaders import read_loaders, sample_classes
from opskit.jvm.memory.metaspace import anonymous_spans, cds_spans, class_space_span, metaspace_spans
from opskit.jvm.memory.threads import java_threads
from opskit.proc.malloc.arenas import arena_spans
from opskit.proc.memory import PAGE_BYTES, u64
from opskit.proc.ranges import Range
from opskit.proc.spans import overlaps, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opskit.jvm.memory.flags import FlagValue
    from opskit.jvm.memory.loaders import Loader
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.files.smaps import Region
    from opskit.proc.memory import Memory
    from opskit.proc.spans import Span
    from opskit.proc.touched_memory import TouchedMemory

RANGE_FLAGS = ("UseCompressedClassPointers", "CompressedClassSpaceSize", *COLLECTOR_FLAGS)
_LARGEST_STACK_BYTES = 1 << 32


class JvmRanges:
    """The ranges of one JVM, without overlaps, sorted. `failed`: what could not be found, and why.

    `flags`: RANGE_FLAGS, where they are known.
    """

    def __init__(
        self,
        structs: VmStructs,
        memory: TouchedMemory,
        regions: Sequence[Region],
        flags: dict[str, FlagValue] | None = None,
    ) -> None:
        self.structs, self.memory, self.regions = structs, memory, regions
        self.flags = self._flags() if flags is None else flags
        self.loaders: list[Loader] | None = None
        self.stacks = 0
        self.failed: list[str] = []
        self._taken: list[Range] = []
        self._find()
        self.ranges = sorted(self._taken)

    def _find(self) -> None:
        structs, memory, regions = self.structs, self.memory, self.regions
        self._add("java-heap", lambda: heap_spans(structs, memory, regions))
        self._add("code-cache", lambda: code_spans(structs, memory))
        self._add("thread-stacks", self._stacks)
        self._add("cds", lambda: cds_spans(structs, memory, regions))
        self._add("class-space", self._class_space)
        self._add("metaspace", self._metaspace)
        self._add("gc", lambda: Collector(structs, memory, regions, self.flags, self._heap(), self._free()).spans())

    def _add(self, kind: str, find: Callable[[], Iterable[Span]]) -> None:
        """Add what is found, without what is known to be of another kind."""
        try:
            spans = without(find(), ((start, end) for start, end, _ in self._taken))
        except NotSupported as error:
            self.failed.append(str(error))
            return
        self._taken += [Range(start, end, kind) for start, end in spans]

    def _free(self) -> list[Span]:
        """Anonymous memory of which no use is known yet."""
        return without(anonymous_spans(self.regions), ((start, end) for start, end, _ in self._taken))

    def _heap(self) -> list[Span]:
        return [(start, end) for start, end, kind in self._taken if kind == "java-heap"]

    def _flags(self) -> dict[str, FlagValue]:
        try:
            return read_flags(self.structs, self.memory, RANGE_FLAGS)
        except NotSupported:
            return {}

    def _stacks(self) -> list[Span]:
        spans = stack_spans(self.structs, self.memory)
        self.stacks = len(spans)
        return spans

    def _class_space(self) -> list[Span]:
        self.loaders = read_loaders(self.structs, self.memory)
        if self.loaders is None:
            raise NotSupported("the list of class loaders in this JVM's memory could not be followed")
        self._sample = sample_classes(self.structs, self.memory, self.loaders)
        found = class_space_span(self.structs, self.memory, self.flags, self._sample.klasses, self._free())
        return [found] if found is not None else []

    def _metaspace(self) -> list[Span]:
        if self.loaders is None:
            return []
        written = [(start, end) for each, start, end in overlaps(self.regions, self._free()) if "w" in each.permissions]
        free = without(self._free(), arena_spans(self.memory, written))  # malloc's arenas need no search
        return metaspace_spans(self.memory, self.memory.pagemap, self._sample, self.regions, free)


def jvm_ranges(structs: VmStructs, memory: TouchedMemory, regions: Sequence[Region]) -> list[Range]:
    """What the addresses are used for: no overlaps, sorted. What is not found is left out."""
    return JvmRanges(structs, memory, regions).ranges


def code_spans(structs: VmStructs, memory: Memory) -> list[Span]:
    """The code cache with the segment maps of its heaps. Raises NotSupported."""
    heaps = read_code_heaps(structs, memory)
    return [span for each in heaps for span in ((each.low, each.high), (each.segments_at, each.segments_end))]


def stack_spans(structs: VmStructs, memory: Memory) -> list[Span]:
    """The stacks of the Java threads, with HotSpot's guard pages. Raises NotSupported."""
    base_at, size_at = (
        structs.at(("JavaThread", field), ("Thread", field)) for field in ("_stack_base", "_stack_size")
    )
    found = []
    for thread in java_threads(structs, memory):
        base, size = u64(memory, thread + base_at) or 0, u64(memory, thread + size_at) or 0
        if 0 < size <= min(base, _LARGEST_STACK_BYTES) and not (base % PAGE_BYTES or size % PAGE_BYTES):
            found.append((base - size, base))
    return found
