"""The rows of the table, the largest first, and what is said about each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.quantities import plural, short_size, size, sizes
from opskit.render.views.mem.fields import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from opskit.analysis.mem.result import Result, Slope
    from opskit.collect.mem.facts import Facts, Row
    from opskit.proc.files.smaps import Usage

_SMALL = 0.05  # of a row: shared, huge and locked pages below it are not mentioned
_MOSTLY = 0.9
_MEMFD = "/memfd:"  # has no name in a directory: the kernel always writes that it is deleted
_LEAST = 64 << 10  # bytes of shared pages


def lines_of(result: Result) -> list[Line]:
    """The kinds of memory that there are: those that grow towards a limit, then the largest first."""
    slopes = {slope.kind: slope for slope in result.slopes}
    rows = [row for row in result.facts.rows if _held(row.usage)]
    growing = {kind: slope.bytes_per_s for kind, slope in slopes.items() if slope.full_in_s is not None}
    rows.sort(key=lambda row: (-growing.get(row.kind, 0), -_held(row.usage)))
    return [_line(row, result.facts, slopes.get(row.kind)) for row in rows]


def sums_of(result: Result) -> list[Line]:
    """The sum of all rows; direct buffers, which are malloced; with -w the memory cgroup."""
    facts, slopes = result.facts, {slope.kind: slope for slope in result.slopes}
    total = facts.total
    lines = [Line("rss", total, total.rss_bytes, None, None, _joined(_beside(total)), slopes.get("rss"), facts.at_s)]
    level = (result.headroom and result.headroom.level) or next(iter(facts.levels), None)
    if level is not None and "cgroup" in slopes:
        lines.append(Line("cgroup", None, level.usage_bytes, None, None, level.path, slopes["cgroup"], facts.at_s))
    jvm = facts.jvm
    if jvm is not None and jvm.direct_bytes:
        most = f", at most {short_size(jvm.direct_max_bytes)}" if jvm.direct_max_bytes is not None else ""
        lines.append(
            Line(
                "direct", None, jvm.direct_bytes, None, None, f"part of malloc{most}", slopes.get("direct"), facts.at_s
            )
        )
    return lines


def _held(usage: Usage) -> int:
    return usage.rss_bytes + usage.swap_bytes + usage.hugetlb_bytes


def _line(row: Row, facts: Facts, slope: Slope | None) -> Line:
    details = _joined([*_DETAILS.get(row.kind, _mappings)(row, facts), *_beside(row.usage)])
    return Line(row.kind, row.usage, row.usage.rss_bytes, row.reserved_bytes, row.items, details, slope, facts.at_s)


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _beside(usage: Usage) -> Iterator[str]:
    """Pages that others map too, swap, huge pages and locked memory."""
    if usage.pss_bytes is not None and usage.rss_bytes - usage.pss_bytes > max(_LEAST, _SMALL * usage.rss_bytes):
        yield f"PSS {size(usage.pss_bytes)}"
    if usage.swap_bytes:
        yield f"{size(usage.swap_bytes)} in swap"
    if usage.huge_bytes > _SMALL * usage.rss_bytes:
        yield f"{size(usage.huge_bytes)} in huge pages"
    if usage.hugetlb_bytes:
        yield f"{size(usage.hugetlb_bytes)} of reserved huge pages"
    if usage.locked_bytes > _SMALL * usage.rss_bytes:
        yield f"{size(usage.locked_bytes)} locked"


def _heap(_row: Row, facts: Facts) -> Iterator[str]:
    """`96 used, 128 committed of 256 MiB`."""
    jvm = facts.jvm
    amounts = [] if jvm is None else [jvm.heap_used_bytes, jvm.heap_committed_bytes, jvm.heap_max_bytes]
    known = [amount for amount in amounts if amount is not None]
    if not known:
        return
    shown, _, unit = sizes(known).rpartition(" ")
    texts = iter(shown.split(" / "))
    used, committed, most = (None if amount is None else next(texts) for amount in amounts)
    said = [f"{used} used"] if used else []
    said += [f"{committed} committed"] if committed else []
    yield f"{', '.join(said)}{' of ' if said and most else 'at most ' if most else ''}{most or ''} {unit}"


def _metaspace(_row: Row, facts: Facts) -> Iterator[str]:
    jvm = facts.jvm
    if jvm is None:
        return
    if jvm.metaspace_used_bytes is not None:
        yield f"{size(jvm.metaspace_used_bytes)} used"
    if jvm.metaspace_max_bytes is not None:
        yield f"at most {short_size(jvm.metaspace_max_bytes)}"
    if jvm.class_loaders:
        yield plural(jvm.class_loaders, "class loader")


def _class_space(_row: Row, facts: Facts) -> Iterator[str]:
    if facts.jvm is not None and facts.jvm.class_space_max_bytes is not None:
        yield f"at most {short_size(facts.jvm.class_space_max_bytes)}"


def _code(_row: Row, facts: Facts) -> Iterator[str]:
    if facts.jvm is not None and facts.jvm.code_reserved_bytes is not None:
        yield f"at most {short_size(facts.jvm.code_reserved_bytes)}"


def _stacks(row: Row, _facts: Facts) -> Iterator[str]:
    if row.items:
        yield f"{plural(row.items, 'stack')} of {size(row.usage.rss_bytes / row.items)}"


def _arenas(row: Row, facts: Facts) -> Iterator[str]:
    malloc = facts.malloc
    if malloc is None:
        return
    if malloc.arenas is not None:
        yield plural(malloc.arenas, "arena")
    if malloc.free_bytes is not None:
        yield f"{'at least ' if malloc.incomplete else ''}{size(malloc.free_bytes)} free"
    if malloc.unknown is not None:
        yield malloc.unknown
    yield from _direct(row, facts)


def _mmapped(row: Row, facts: Facts) -> Iterator[str]:
    if row.items:
        yield plural(row.items, "block")
    yield from _direct(row, facts)


def _direct(row: Row, facts: Facts) -> Iterator[str]:
    """`direct buffers 42.0 MiB of at most 256 MiB`, in the row where they are: large ones are blocks of their own."""
    jvm = facts.jvm
    if jvm is None or not jvm.direct_bytes:
        return
    blocks = next((each.usage.rss_bytes for each in facts.rows if each.kind == "malloc-mmapped"), 0)
    if (row.kind == "malloc-mmapped") == (blocks >= jvm.direct_bytes * _MOSTLY):
        most = f" of at most {short_size(jvm.direct_max_bytes)}" if jvm.direct_max_bytes is not None else ""
        yield f"direct buffers {size(jvm.direct_bytes)}{most}"


def _runtime(row: Row, facts: Facts) -> Iterator[str]:
    """`CPython, 20 mappings`, `jemalloc, malloc by elimination, 6 mappings`."""
    malloc = facts.malloc
    if malloc is not None and (malloc.runtime or malloc.name):
        yield str(malloc.runtime or malloc.name)
    if malloc is not None and malloc.unknown is not None:
        yield "malloc by elimination"
    yield from _mappings(row, facts)


def _mapped(row: Row, facts: Facts) -> Iterator[str]:
    if facts.jvm is not None and facts.jvm.mapped_buffer_bytes:
        yield f"mapped ByteBuffers {size(facts.jvm.mapped_buffer_bytes)}"
    yield from _files(row, facts)


def _files(row: Row, facts: Facts) -> Iterator[str]:
    """How many there are, and the largest one."""
    parts = [part for part in facts.parts if part.kind == row.kind]
    if not parts:
        yield from _mappings(row, facts)
        return
    largest = max(parts, key=lambda part: part.usage.rss_bytes)
    deleted = " (deleted)" if largest.deleted and not largest.name.startswith(_MEMFD) else ""
    share = f" {size(largest.usage.rss_bytes)}" if len(parts) > 1 else ""
    yield f"{plural(len(parts), 'file')}: {largest.name.rpartition('/')[2]}{deleted}{share}"


def _mappings(row: Row, _facts: Facts) -> Iterator[str]:
    if row.items:
        yield plural(row.items, "mapping")


_DETAILS: Mapping[str, Callable[[Row, Facts], Iterator[str]]] = {
    "java-heap": _heap,
    "metaspace": _metaspace,
    "class-space": _class_space,
    "code-cache": _code,
    "thread-stacks": _stacks,
    "malloc-arenas": _arenas,
    "malloc-mmapped": _mmapped,
    "runtime-heap": _runtime,
    "mapped-files": _mapped,
    "libraries": _files,
    "shared-memory": _files,
    "named": _files,
}
