"""Divide a process's resident memory by what it is used for. The rows sum to what smaps says, to the byte.

A mapping belongs to a kind by its name, or by the ranges in it that a JVM, an allocator or threads have. Where it holds several, pagemap
says how many pages each has. Pagemap is read later than smaps: the largest part gets the difference.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from opskit.collect.mem.facts import Part, Row
from opskit.proc.bss import SMALL_BYTES
from opskit.proc.files.smaps import Usage
from opskit.proc.memory import PAGE_BYTES
from opskit.proc.ranges import KINDS, Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from opskit.proc.files.smaps import Region
    from opskit.proc.pagemap import PageMap

_SHARED = (
    "/SYSV",
    "/dev/shm/",  # noqa: S108  (only compared)
    "/memfd:",
    "/dev/zero",
    "[anon_shmem:",
)
_KERNEL = ("[v", "[uprobes]", "[sigpage]", "/[aio]", "anon_inode:", "socket:")
_LIBRARY = re.compile(r"\.so(\.[0-9.]+)?$")
_DETAILED = frozenset(("mapped-files", "libraries", "shared-memory", "named", "cds"))
_MOST_DIVIDED_BYTES = 256 << 30  # of addresses that pagemap is read for, which takes 0.2 s of CPU time
_OF_RSS = ("anonymous_bytes", "huge_bytes", "locked_bytes")


def account(
    regions: Sequence[Region],
    ranges: Sequence[Range],
    pagemap: PageMap | None,
    rest: str = "unnamed",
    memory_devices: frozenset[str] = frozenset(),
) -> tuple[tuple[Row, ...], tuple[Part, ...]]:
    """The rows in the order of KINDS, and the parts of some of them, the largest first.

    `ranges` are in order and do not overlap. `rest`: the kind of anonymous memory without a name or a range.
    `memory_devices`: of tmpfs, whose files are shared memory wherever they are mounted.
    """
    tally = _Tally()
    at, left = 0, _MOST_DIVIDED_BYTES
    for region, (kind, name) in zip(regions, _named(regions, rest, memory_devices)):
        while at < len(ranges) and ranges[at].end <= region.start:
            at += 1
        pieces = list(_pieces(region, kind, ranges, at))
        if len(pieces) == 1:
            usages = [region.usage]
        elif region.usage.rss_bytes or region.usage.swap_bytes:
            counted = region.end - region.start - max(piece.end - piece.start for piece in pieces)
            usages = _divided(region, pieces, pagemap if counted <= left else None)
            left -= counted if counted <= left else 0
        else:
            usages = _undivided(region, pieces)
        for piece, usage in zip(pieces, usages):
            tally.add(piece, usage, name if piece.kind == kind else region.name, region.deleted)
    return tally.rows(ranges), tally.parts()


def total_of(usages: Iterable[Usage]) -> Usage:
    """The sum of usages in which all is known."""
    return Usage(*map(sum, zip(*usages)))


class _Tally:
    def __init__(self) -> None:
        self._usages: dict[str, list[Usage]] = {}
        self._reserved: dict[str, int] = {}
        self._parts: dict[tuple[str, str, bool], list[Usage]] = {}

    def add(self, piece: Range, usage: Usage, name: str, deleted: bool) -> None:
        kind = piece.kind
        self._usages.setdefault(kind, []).append(usage)
        self._reserved[kind] = self._reserved.get(kind, 0) + piece.end - piece.start
        if kind in _DETAILED and name:
            self._parts.setdefault((kind, name, deleted), []).append(usage)

    def rows(self, ranges: Sequence[Range]) -> tuple[Row, ...]:
        blocks = Counter(each.kind for each in ranges if each.kind not in _DETAILED)
        found = [
            Row(kind, total_of(usages), self._reserved[kind], blocks.get(kind, len(usages)))
            for kind in KINDS
            if (usages := self._usages.get(kind))
        ]
        return tuple(row for row in found if any(row.usage) or row.kind in blocks)

    def parts(self) -> tuple[Part, ...]:
        found = [Part(*key, total_of(usages)) for key, usages in self._parts.items()]
        used = [part for part in found if any(part.usage)]
        return tuple(sorted(used, key=lambda part: -(part.usage.rss_bytes + part.usage.hugetlb_bytes)))


_NONE = Usage()


def _named(regions: Sequence[Region], rest: str, memory_devices: frozenset[str]) -> Iterator[tuple[str, str]]:
    """The kind of each mapping without regard to ranges, and the name of its part. What follows a library is its .bss."""
    code = {(each.name, each.inode) for each in regions if "x" in each.permissions and each.name.startswith("/")}
    before: Region | None = None
    library = ""
    for region in regions:
        kind, name = _kind(region, code, rest), region.name
        if kind == "mapped-files" and region.device in memory_devices:
            kind = "shared-memory"
        is_bss = before is not None and library and before.end == region.start and _is_bss(region)
        if is_bss:
            kind, name = "libraries", library
        library = name if kind == "libraries" and not is_bss and "w" in region.permissions else ""
        before = region
        yield kind, name


def _is_bss(region: Region) -> bool:
    is_anonymous = not region.name and not region.inode and region.permissions.startswith("rw")
    return is_anonymous and region.end - region.start <= SMALL_BYTES


def _kind(region: Region, code: set[tuple[str, int]], rest: str) -> str:
    name = region.name
    if region.usage.hugetlb_bytes:
        return "huge-pages"
    if not name:
        return rest if "w" in region.permissions else "unnamed"
    if name.startswith("/memfd:java_heap"):  # ZGC's
        return "java-heap"
    if name.startswith(_SHARED):
        return "shared-memory"
    if name in _BY_NAME or name.startswith("[stack:"):
        return _BY_NAME.get(name, "thread-stacks")
    if name.startswith("[anon"):
        return "named"
    if name.startswith(_KERNEL):
        return "kernel"
    if name.endswith(".jsa"):
        return "cds"
    if (name, region.inode) in code or _LIBRARY.search(name):
        return "libraries"
    return "mapped-files"


_BY_NAME: Mapping[str, str] = {"[heap]": "malloc-arenas", "[stack]": "thread-stacks"}


def _pieces(region: Region, kind: str, ranges: Sequence[Range], at: int) -> Iterator[Range]:
    """The parts of a mapping, page by page; those between the ranges have its own kind."""
    start = region.start
    while at < len(ranges) and ranges[at].start < region.end:
        begin = max(start, _page(ranges[at].start))
        end = min(region.end, _page(ranges[at].end))
        if begin > start:
            yield Range(start, begin, kind)
        if end > begin:
            yield Range(begin, end, ranges[at].kind)
        start = max(start, end)
        at += 1
    if start < region.end:
        yield Range(start, region.end, kind)


def _page(address: int) -> int:
    return -(-address // PAGE_BYTES) * PAGE_BYTES


def _divided(region: Region, pieces: Sequence[Range], pagemap: PageMap | None) -> list[Usage]:
    """The usage of each piece."""
    usage = region.usage
    if pagemap is None or len({piece.kind for piece in pieces}) == 1:
        return _undivided(region, pieces)
    largest = _largest(pieces)
    # Without pages that other processes have too, each page of it is this one's alone: but the zero page, which is not resident.
    alone = usage.pss_bytes == usage.rss_bytes and usage.rss_bytes > 0
    counts = _counts(pagemap, pieces, largest, exclusive=alone)
    if (
        alone
        and not any(rss for rss, _ in counts)
        and not pagemap.has_exclusive(pieces[largest].start, pieces[largest].end)
    ):
        counts = _counts(pagemap, pieces, largest, exclusive=False)  # a kernel before 4.2 does not say it
    resident = _fitting([rss for rss, _ in counts], usage.rss_bytes, largest)
    swapped = _fitting([swap for _, swap in counts], usage.swap_bytes, largest)
    shares = {
        field: _proportional(getattr(usage, field), resident, usage.rss_bytes, largest)
        for field in (*_OF_RSS, "pss_bytes")
    }
    return [
        Usage(rss_bytes=resident[n], swap_bytes=swapped[n], **{field: values[n] for field, values in shares.items()})
        for n in range(len(pieces))
    ]


def _undivided(region: Region, pieces: Sequence[Range]) -> list[Usage]:
    """The usages where the mapping cannot be looked into: its largest piece has all."""
    largest = _largest(pieces)
    return [region.usage if n == largest else _NONE for n in range(len(pieces))]


def _largest(pieces: Sequence[Range]) -> int:
    return max(range(len(pieces)), key=lambda n: pieces[n].end - pieces[n].start)


def _counts(pagemap: PageMap, pieces: Sequence[Range], largest: int, *, exclusive: bool) -> list[tuple[int, int]]:
    """The (resident, swapped) bytes of each piece but the largest, which may be half a heap."""
    return [
        pagemap.count_bytes(piece.start, piece.end, exclusive=exclusive) if n != largest else (0, 0)
        for n, piece in enumerate(pieces)
    ]


def _fitting(counts: list[int], total: int, largest: int) -> list[int]:
    """The counts with that of the largest piece, so that they sum to the total; scaled where they are more."""
    others = sum(counts) - counts[largest]
    found = [count * total // others if others > total else count for count in counts]
    found[largest] = 0
    found[largest] = total - sum(found)
    return found


def _proportional(total: int | None, weights: Sequence[int], whole: int, largest: int) -> list[int]:
    """A sum divided like the weights, which sum to `whole`."""
    found = [(total or 0) * weight // whole if whole else 0 for weight in weights]
    found[largest] += (total or 0) - sum(found)
    return found
