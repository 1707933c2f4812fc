"""Addresses whose use is known: what a runtime, an allocator or the kernel says about a part of an address space."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

# What memory is used for, in the order of the table. A JVM's, an allocator's, any program's.
KINDS = {
    "java-heap": "Java heap",
    "metaspace": "metaspace",
    "class-space": "compressed class space",
    "code-cache": "code cache",
    "gc": "GC structures",
    "cds": "CDS archive",
    "thread-stacks": "thread stacks",
    "malloc-arenas": "malloc arenas",
    "malloc-mmapped": "malloc, large blocks",
    "runtime-heap": "runtime or allocator",  # Go, Node, CPython; malloc of an allocator that does not tell, by elimination
    "mapped-files": "mapped files",
    "libraries": "libraries and programs",
    "shared-memory": "shared memory",
    "named": "named anonymous memory",  # [anon:NAME]
    "huge-pages": "huge pages (hugetlb)",  # outside of RSS
    "kernel": "kernel mappings",  # [vdso], [vvar]
    "unnamed": "other anonymous memory",
}


class Range(NamedTuple):
    """Addresses from `start` to below `end`, for one of KINDS."""

    start: int
    end: int
    kind: str


def layered(*layers: Iterable[Range]) -> list[Range]:
    """All ranges in order, none overlapping: an earlier layer wins, and in one layer the range that begins first.

    What a range has beyond one of its own kind extends that one: a JVM knows less of a thread's stack than the C library does.
    """
    found: list[Range] = []
    for layer in layers:
        found = _below(found, sorted(layer))
    return found


def _below(top: list[Range], layer: list[Range]) -> list[Range]:
    """Both, where `top` wins; it is in order and does not overlap."""
    found: list[Range] = []
    at = 0
    for each in layer:
        start = max(each.start, found[-1].end) if found else each.start
        while start < each.end:
            while at < len(top) and top[at].end <= start:
                found.append(top[at])
                at += 1
            above = top[at] if at < len(top) else None
            if above is None or above.start > start:
                end = each.end if above is None else min(each.end, above.start)
                _add(found, Range(start, end, each.kind), joined=start > each.start)
            if above is None or above.start >= each.end:
                break
            _add(found, above, joined=above.start > each.start and above.kind == each.kind)
            start, at = above.end, at + 1
    return found + top[at:]


def _add(found: list[Range], each: Range, *, joined: bool) -> None:
    """Append it, or where both are parts of one range extend the last."""
    last = found[-1] if joined and found else None
    if last is not None and last.kind == each.kind and last.end == each.start:
        found[-1] = Range(last.start, each.end, each.kind)
    else:
        found.append(each)
