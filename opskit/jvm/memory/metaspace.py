"""Where a JVM's class metadata are: metaspace, the compressed class space, and the CDS archive.

Since JDK 16 metaspace consists of nodes: reserved at a multiple of a root chunk's size, committed in granules of 64 KiB
(memory/metaspace/virtualSpaceNode.hpp). vmStructs does not have their list. Before, they are lists of VirtualSpaceNodes, and each
chunk in a node refers to its node (memory/metaspace/metachunk.hpp). Source of the class space: oops/compressedKlass.hpp.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import TYPE_CHECKING

from opskit.proc.memory import PAGE_BYTES, u64
from opskit.proc.spans import is_anonymous, merged, overlaps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opskit.jvm.memory.flags import FlagValue
    from opskit.jvm.memory.loaders import ClassSample
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.files.smaps import Region
    from opskit.proc.memory import Memory
    from opskit.proc.pagemap import PageMap
    from opskit.proc.spans import Span

ROOT_CHUNK_BYTES = 4 << 20  # a divisor of that of later JDKs (16 MiB)
_RESERVED_BYTES = 64 << 20  # for a node (memory/metaspace/metaspaceSettings.hpp)
_GRANULE_BYTES, _SEARCHED_BYTES = 64 << 10, 256 << 10
_MOST_CHUNK_STEPS, _STEP_BYTES, _CHUNK_HEADER_BYTES, _NODE_BYTES = 64, 1 << 10, 80, 160
_MOST_NODES, _MOST_UNITS, _MOST_TABLES, _MOST_TRIED, _MOST_FAILED = 1 << 16, 1 << 16, 8, 64, 4
_WORDS_OF_A_CHUNK = frozenset((128, 256, 512, 4096, 8192))
_LARGEST_CHUNK_WORDS = 1 << 27
_PRESENT = 128


def cds_spans(structs: VmStructs, memory: Memory, regions: Sequence[Region]) -> list[Span]:
    """The CDS archives: mappings of *.jsa files, and the range that HotSpot gives, where they are relocated or copied."""
    spans = [(region.start, region.end) for region in regions if region.name.endswith(".jsa")]
    places = (structs.find(("MetaspaceObj", f"_shared_metaspace_{end}")) for end in ("base", "top"))
    base, top = ((u64(memory, at) or 0) if at is not None else 0 for at in places)
    if 0 < base < top:
        spans += [(start, end) for region, start, end in overlaps(regions, [(base, top)]) if not _is_reserved(region)]
    return merged(spans)


def _is_reserved(region: Region) -> bool:
    """Whether it has no memory: not committed."""
    return region.permissions.startswith("---") and not region.usage.rss_bytes


def class_space_span(
    structs: VmStructs, memory: Memory, flags: dict[str, FlagValue], klasses: Iterable[int], free: Sequence[Span]
) -> Span | None:
    """The compressed class space: a part of the `free` (anonymous) memory with a class in it. None: there is none, or unknown."""
    size = flags.get("CompressedClassSpaceSize")
    if not flags.get("UseCompressedClassPointers", True) or not isinstance(size, int) or size <= 0:
        return None
    at = structs.find(
        ("CompressedKlassPointers", "_base"),
        ("CompressedKlassPointers", "_narrow_klass._base"),
        ("Universe", "_narrow_klass._base"),
    )
    base = (u64(memory, at) or 0) if at is not None else 0
    for klass in klasses:
        span = _containing(free, klass)
        found = _cut(span, klass, size, base) if span is not None else None
        if found is not None:
            return found
    return None


def _cut(span: Span, klass: int, size: int, base: int) -> Span | None:
    """So much of a span as can be the class space. It begins behind the archive, aligned, or at the base of compressed classes."""
    low, high = span
    if high - low <= size:
        return span
    starts = base, *(-(-low // align) * align for align in (16 << 20, ROOT_CHUNK_BYTES, PAGE_BYTES)), high - size
    return next(
        ((start, start + size) for start in starts if low <= start <= klass < start + size <= high),
        None,
    )


def _containing(spans: Sequence[Span], address: int) -> Span | None:
    """The span of a sorted list with this address."""
    number = bisect_right(spans, (address, 1 << 64)) - 1
    return spans[number] if number >= 0 and address < spans[number][1] else None


def metaspace_spans(
    memory: Memory, pagemap: PageMap, sample: ClassSample, regions: Sequence[Region], free: Sequence[Span]
) -> list[Span]:
    """The nodes of metaspace that are in memory. `free`: anonymous memory of which no other use is known, sorted."""
    pointers = sorted(each for each in sample.data if _containing(free, each) is not None)
    listed = _listed_nodes(memory, pointers, free)
    return listed or _nodes_by_content(memory, pagemap, sample.tables, pointers, regions, free)


def _listed_nodes(memory: Memory, pointers: Sequence[int], free: Sequence[Span]) -> list[Span]:
    """The nodes of JDK 15 and before: from the chunks around some data to their nodes, and along the list."""
    found: dict[int, Span] = {}
    failed = 0
    for pointer in pointers[:: max(1, len(pointers) // _MOST_TRIED)]:
        if any(low <= pointer < high for low, high in found.values()):
            continue
        node, space_at = _node_of(memory, pointer)
        failed += not node
        if failed >= _MOST_FAILED and not found:
            break
        while len(found) < _MOST_NODES:
            span = _virtual_space(memory.read(node, _NODE_BYTES), space_at) if node and node not in found else None
            if span is None or _containing(free, span[0]) is None:
                break
            found[node] = span
            node = u64(memory, node) or 0
    return merged(found.values())


def _node_of(memory: Memory, pointer: int) -> tuple[int, int]:
    """The VirtualSpaceNode of the chunk around an address, and where its VirtualSpace is in it; (0, 0): no such chunk."""
    for step in range(_MOST_CHUNK_STEPS):
        header = pointer // _STEP_BYTES * _STEP_BYTES - step * _STEP_BYTES
        data = memory.read(header, _CHUNK_HEADER_BYTES)
        if len(data) < _CHUNK_HEADER_BYTES:
            return 0, 0
        words = struct.unpack("<10Q", data)
        is_size = words[0] in _WORDS_OF_A_CHUNK or (words[0] <= _LARGEST_CHUNK_WORDS and words[0] % 128 == 0)
        if not is_size or not header <= pointer < header + 8 * words[0]:
            continue
        for node in filter(None, words[3:]):
            content = memory.read(node, _NODE_BYTES)
            for space_at in range(8, len(content) - 32, 8):
                span = _virtual_space(content, space_at)
                if span is not None and span[0] <= header < span[1]:
                    return node, space_at
    return 0, 0


def _virtual_space(node: bytes, at: int) -> Span | None:
    """The reserved range of the VirtualSpace at an offset; None where none is."""
    if len(node) < at + 32:
        return None
    low_boundary, high_boundary, low, high = struct.unpack_from("<4Q", node, at)
    is_space = low_boundary == low < high <= high_boundary and low % PAGE_BYTES == high_boundary % PAGE_BYTES == 0
    return (low_boundary, high_boundary) if is_space else None


def _nodes_by_content(
    memory: Memory,
    pagemap: PageMap,
    tables: Iterable[int],
    pointers: Sequence[int],
    regions: Sequence[Region],
    free: Sequence[Span],
) -> list[Span]:
    """Aligned parts of nodes: those with known data, those whose first pages have a constant pool or a method, and those behind in a node."""
    marked = {pointer // ROOT_CHUNK_BYTES for pointer in pointers}
    wanted = [struct.pack("<Q", table) for table in sorted(tables)[:_MOST_TABLES]]
    found = []
    node = (0, 0)  # from its first part that was found on
    for number, spans in sorted(_units(regions, free)):
        start, end = number * ROOT_CHUNK_BYTES, (number + 1) * ROOT_CHUNK_BYTES
        if end > node[1] and (number in marked or _has_word(memory, pagemap, spans, wanted)):
            around = _containing(free, start) or (start, end)
            node = start, min(start + _RESERVED_BYTES, around[1])
        if end <= node[1]:
            found.append((start, end))
    return merged(found)


def _units(regions: Sequence[Region], free: Sequence[Span]) -> Iterator[tuple[int, list[Span]]]:
    """Each multiple of a root chunk's size that could be of a node: free, committed in granules. With its committed parts."""
    units: dict[int, list[Span]] = {}
    for region, start, end in overlaps(regions, free):
        if region.permissions.startswith("rw-") and region.usage.rss_bytes:
            last = min(-(-end // ROOT_CHUNK_BYTES), start // ROOT_CHUNK_BYTES + _MOST_UNITS - len(units))
            for number in range(start // ROOT_CHUNK_BYTES, last):
                low, high = number * ROOT_CHUNK_BYTES, (number + 1) * ROOT_CHUNK_BYTES
                units.setdefault(number, []).append((max(start, low), min(end, high)))
    for number, spans in units.items():
        low, high = number * ROOT_CHUNK_BYTES, (number + 1) * ROOT_CHUNK_BYTES
        span = _containing(free, low)
        if span is not None and high <= span[1] and not any(at % _GRANULE_BYTES for each in spans for at in each):
            yield number, spans


def _has_word(memory: Memory, pagemap: PageMap, spans: Iterable[Span], wanted: Sequence[bytes]) -> bool:
    """Whether the first pages in memory contain one of these words, at a multiple of 8."""
    left = _SEARCHED_BYTES
    for start, end in spans:
        present = pagemap.present(start, end)
        first = next((number for number, entry in enumerate(present) if entry >= _PRESENT), None)
        if first is None:
            continue
        begin = start + first * PAGE_BYTES
        data = memory.read(begin, min(end - begin, left))
        for word in wanted:
            at = data.find(word)
            while at >= 0:
                if at % 8 == 0:
                    return True
                at = data.find(word, at + 1)
        left -= len(data)
        if left <= 0:
            break
    return False


def anonymous_spans(regions: Iterable[Region]) -> list[Span]:
    """All anonymous memory, reserved or not, in the fewest spans."""
    return merged((region.start, region.end) for region in regions if is_anonymous(region))
