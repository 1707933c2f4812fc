"""Spans of addresses, (start, end) with the end outside: merged, cut, taken from one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opskit.proc.files.smaps import Region

Span = tuple[int, int]
_NAMED = "[anon:"  # prctl(PR_SET_VMA)


def is_anonymous(region: Region) -> bool:
    """Whether it is private memory without a file, also a reserved part of one."""
    return region.permissions.endswith("p") and (not region.name or region.name.startswith(_NAMED))


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same addresses in the fewest spans, sorted."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        elif start < end:
            found.append((start, end))
    return found


def without(spans: Iterable[Span], taken: Iterable[Span]) -> list[Span]:
    """What is left of the spans, sorted."""
    gaps = merged(taken)
    found, at = [], 0
    for start, end in merged(spans):
        while at < len(gaps) and gaps[at][1] <= start:
            at += 1
        for number in range(at, len(gaps)):
            low, high = gaps[number]
            if low >= end:
                break
            if start < low:
                found.append((start, low))
            start = max(start, high)
        if start < end:
            found.append((start, end))
    return found


def overlaps(regions: Iterable[Region], spans: Iterable[Span]) -> Iterator[tuple[Region, int, int]]:
    """Each region with the begin and end of each part of it that is in a span. Both are sorted."""
    wanted = merged(spans)
    at = 0
    for region in regions:
        while at < len(wanted) and wanted[at][1] <= region.start:
            at += 1
        for number in range(at, len(wanted)):
            low, high = wanted[number]
            if low >= region.end:
                break
            yield region, max(low, region.start), min(high, region.end)
