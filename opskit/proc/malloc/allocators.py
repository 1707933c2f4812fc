"""What a process's allocator has taken: glibc's arenas and large blocks, Go's heap; others are found by elimination."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.maps import HEAP_BYTES
from opskit.proc.malloc.arenas import find_main_arena, heaps_in, of_arenas, ring_of
from opskit.proc.malloc.chunks import ChunkReader
from opskit.proc.malloc.free_chunks import free_in
from opskit.proc.malloc.record import Malloc
from opskit.proc.malloc.runtimes import glibc_of, read_runtime
from opskit.proc.memory import ProcessMemory
from opskit.proc.pagemap import PageMap, PresentMemory
from opskit.proc.ranges import Range
from opskit.proc.spans import without

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.proc.files.smaps import Region
    from opskit.proc.fs import ProcFS
    from opskit.proc.malloc.arenas import Arena, Heap
    from opskit.proc.malloc.runtimes import Runtime

_MOST_MISSES, _MOST_FREE, _MOST_FREE_PER_GIB = 16384, 100_000, 60_000  # about 70 ms of CPU time, and 40 ms per GiB
_MOST_MISSES_EXACT, _MOST_FREE_EXACT = 1 << 22, 20_000_000
_LARGEST_DATA = 4 << 20  # of glibc, or of a program that it is linked into
_GO_HEAP = range(0xC000000000, 0xC000000000 + (1 << 40))  # where it begins up to Go 1.25 (runtime/malloc.go)


def read_malloc(
    fs: ProcFS,
    pid: int,
    regions: Sequence[Region],
    memory: ProcessMemory | None,
    pagemap: PageMap | None,
    known: Sequence[Range] = (),
    runtime: Runtime | None = None,
    *,
    exact: bool = False,
) -> tuple[Malloc, list[Range]]:
    """Recognise the allocator and find its memory beside the `known` ranges, which are in order and do not overlap.

    `exact`: also where millions of blocks have to be read. `runtime`: of an earlier look at this process.
    """
    runtime = runtime or read_runtime(fs, pid, regions)
    ranges = [*_decorated(regions)]
    if runtime.language == "Go":
        ranges += [Range(each.start, each.end, "runtime-heap") for each in regions if _is_go_heap(each)]
    found = Malloc(runtime.allocator, runtime=runtime.language)
    if runtime.allocator == "Go":
        return found, sorted(ranges)
    unknown = f"malloc by elimination: {runtime.allocator or 'an unknown allocator'} does not tell what it has taken"
    if runtime.allocator not in ("glibc", None):
        return found._replace(unknown=unknown), sorted(ranges)
    if memory is None or pagemap is None:
        return found._replace(unknown="its memory cannot be read"), sorted(ranges)
    is_known = [*known, *ranges]

    def read(machine: ProcFS) -> tuple[Malloc, list[Range]]:
        is_ours = machine is fs
        present = PresentMemory(
            memory if is_ours else ProcessMemory(machine, pid), pagemap if is_ours else PageMap(machine, pid)
        )
        return _Glibc(regions, present, exact=exact).read(found, is_known)

    try:
        malloc, taken = fs.calls.work_out(fs, "malloc", "tuple[Malloc, list[Range]]", (pid,), read)
    except OSError:  # of a capture
        return found._replace(unknown="its memory cannot be read"), sorted(ranges)
    if runtime.allocator is None:  # glibc may be linked into the program: its arenas prove it
        if not malloc.arenas:
            return found._replace(unknown=unknown), sorted(ranges)
        malloc = malloc._replace(name="glibc")
    return malloc, sorted([*ranges, *taken])


def _is_go_heap(region: Region) -> bool:
    return region.start in _GO_HEAP and not region.name and not region.inode


def _decorated(regions: Sequence[Region]) -> Iterator[Range]:
    """What libraries name themselves: glibc 2.38 with glibc.mem.decorate_maps=1, Go 1.25."""
    for region in regions:
        if region.name.startswith("[anon: "):
            kind = next((kind for name, kind in _DECORATIONS.items() if region.name.startswith(name)), None)
            if kind is not None:
                yield Range(region.start, region.end, kind)


_DECORATIONS = {
    "[anon: glibc: malloc arena": "malloc-arenas", "[anon: glibc: malloc": "malloc-mmapped",
    "[anon: glibc: pthread stack": "thread-stacks", "[anon: glibc: loader malloc": "libraries", "[anon: Go: ": "runtime-heap",
}  # fmt: skip


class _Glibc:
    def __init__(self, regions: Sequence[Region], memory: PresentMemory, *, exact: bool) -> None:
        self._regions, self._memory = regions, memory
        self._most_misses, self._most_free = _MOST_MISSES_EXACT, _MOST_FREE_EXACT
        if not exact:
            resident = sum(region.usage.rss_bytes for region in regions)
            self._most_misses, self._most_free = _MOST_MISSES, _MOST_FREE + _MOST_FREE_PER_GIB * resident // (1 << 30)

    def read(self, found: Malloc, known: Sequence[Range]) -> tuple[Malloc, list[Range]]:
        """Its arenas, and the large blocks in what is not known."""
        searched = ((region.start, region.end) for region in self._regions if _is_searched(region))
        gaps = without(searched, ((start, end) for start, end, _ in known))
        candidates = heaps_in(self._memory, gaps)
        ring = self._ring(candidates)
        heaps = of_arenas(candidates, ring)
        ranges = [Range(heap.start, heap.start + HEAP_BYTES, "malloc-arenas") for heap in heaps]
        parts = without(gaps, ((heap.start, heap.start + HEAP_BYTES) for heap in heaps))
        chunks = ChunkReader(self._memory, self._most_misses).find(parts)
        ranges += [Range(start, end, "malloc-mmapped") for start, end in chunks]
        malloc = found._replace(mmapped_bytes=sum(end - start for start, end in chunks), mmapped_blocks=len(chunks))
        if not ring:
            return malloc._replace(unknown="its arenas were not found: not the layout of glibc 2.27 or later"), ranges
        return self._with_free(malloc, ring), ranges

    def _ring(self, heaps: Sequence[Heap]) -> list[Arena]:
        """All arenas: by libc's data where the main one is, else by the first heap whose arena leads back to itself."""
        for start, end in _data_of_libc(self._regions):
            ring = find_main_arena(self._memory, start, end)
            if ring:
                return ring
        return ring_of(self._memory, heaps)

    def _with_free(self, malloc: Malloc, ring: Sequence[Arena]) -> Malloc:
        malloc = malloc._replace(arenas=len(ring), system_bytes=sum(arena.system_bytes for arena in ring))
        free = free_in(ring, self._memory, self._most_free)
        if free is None:
            return malloc._replace(incomplete="the free blocks in its arenas cannot be read")
        return malloc._replace(
            free_bytes=free.bytes, top_bytes=free.top_bytes, resident_free_bytes=free.resident_bytes,
            incomplete=free.incomplete,
        )  # fmt: skip


def _is_searched(region: Region) -> bool:
    return not region.name and region.permissions.startswith("rw") and region.usage.rss_bytes > 0


def _data_of_libc(regions: Sequence[Region]) -> Iterator[tuple[int, int]]:
    """The writable data of glibc, or of the program where glibc is linked into it."""
    program = next((region.name for region in regions if region.name.startswith("/")), None)
    name = glibc_of(regions) or program
    for region in regions:
        if region.name and region.name == name and region.permissions.startswith("rw"):
            yield region.start, min(region.end, region.start + _LARGEST_DATA)
