"""`-o mem.svg`: the rows of a process against the limit of its cgroup; with -w over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.mem.words import who
from opskit.quantities import short_size, size
from opskit.render.pictures.stacked import Area, Bar, Layer, Stacked
from opskit.render.pictures.stacked import draw as draw_stacked
from opskit.render.views.mem import sentences
from opskit.render.views.mem.fields import title
from opskit.render.views.mem.rows import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.mem.result import Result
    from opskit.collect.mem.facts import Facts
    from opskit.proc.cgroup.memory import MemoryGroup
    from opskit.render.report import About

# Relations show in the hue: Java in blues, code in greens, malloc in oranges, files in purples.
_COLORS = {
    "java-heap": "#0072b2", "metaspace": "#56b4e9", "class-space": "#9fd4f3", "code-cache": "#009e73", "gc": "#6cc5a8",
    "cds": "#b7e3d4", "thread-stacks": "#e6b800", "malloc-arenas": "#d55e00",
    "malloc-mmapped": "#f2a26a", "runtime-heap": "#3b5bdb", "mapped-files": "#cc79a7", "libraries": "#e6bfd5",
    "shared-memory": "#8e2a6b", "named": "#999933", "huge-pages": "#332288", "kernel": "#b9c0c8", "unnamed": "#d7dbe0",
}  # fmt: skip
_OTHER, _CACHE, _KERNEL = "#d7dbe0", "#9aa4af", "#7d8a99"
_STILL = 0.1  # of the largest change
_FAR = 3.0  # a limit so many times above the highest amount would hide how it grows


def draw(about: About, result: Result) -> str:
    """The picture, with the verdict as its first note."""
    notes = [*sentences.verdict(result), about.line]
    if len(result.samples) > 1:
        return draw_stacked(_over_time(result, notes))
    return draw_stacked(_now(result, notes))


def _now(result: Result, notes: Sequence[str]) -> Stacked:
    facts, headroom = result.facts, result.headroom
    lines = lines_of(result)
    layers = [Layer(title(line.kind), _COLORS.get(line.kind, _OTHER), line.bytes or 0, line.details) for line in lines]
    if not lines:
        layers = [Layer("resident", _COLORS["java-heap"], facts.total.rss_bytes)]
    grows, level = [*_of_growth(result)], headroom.level if headroom else None
    # The process's bar has files too, which the kernel reclaims: where there is a limit, its cgroup's bar is what reaches it.
    bars = [Bar(f"process {who(facts)}: {size(facts.total.rss_bytes)} resident", [*layers, *(() if level else grows)])]
    if level is not None:
        bars.append(Bar(f"cgroup {level.path}: {size(level.usage_bytes)}", [*_of_group(level, grows)]))
    return Stacked(_title(facts), notes, [*_limits(level)], bars)


def _of_growth(result: Result) -> Iterator[Layer]:
    """What the heap may still take."""
    growth = result.headroom.heap_growth_bytes if result.headroom else None
    if growth:
        most = f"up to -Xmx: {short_size(result.facts.jvm and result.facts.jvm.heap_max_bytes)}"
        yield Layer("the heap may still grow", _COLORS["java-heap"], growth, most, light=True)


def _of_group(level: MemoryGroup, grows: Sequence[Layer]) -> Iterator[Layer]:
    """What counts at the moment of a kill, now and with the growth; then page cache."""
    shown = 0
    for name, color, amount, note in (
        ("anonymous", _COLORS["malloc-arenas"], level.anon_bytes, "all processes of the cgroup"),
        ("shared memory", _COLORS["shared-memory"], level.shmem_bytes, "tmpfs, /dev/shm, memfd"),
        ("kernel memory", _KERNEL, level.kernel_bytes, "slab, stacks, page tables, sockets"),
    ):
        if amount:
            shown += amount
            yield Layer(name, color, amount, note)
    if level.pinned_bytes is not None and level.pinned_bytes > shown:
        yield Layer("other memory that stays", _OTHER, level.pinned_bytes - shown)
    yield from grows
    if level.cache_bytes:
        yield Layer(
            "page cache", _CACHE, level.cache_bytes, "goes first: reclaimed before the kernel kills", light=True
        )


def _limits(level: MemoryGroup | None) -> Iterator[tuple[str, int]]:
    if level is not None and level.limit_bytes is not None:
        yield f"limit {short_size(level.limit_bytes)}", level.limit_bytes
    if level is not None and level.high_bytes is not None:
        yield f"high {short_size(level.high_bytes)}", level.high_bytes


def _over_time(result: Result, notes: Sequence[str]) -> Stacked:
    looks = result.samples
    held = [{row.kind: row.usage.rss_bytes for row in look.rows} or {"rss": look.total.rss_bytes} for look in looks]
    # What changes is above what does not, which it would carry up and down.
    changes = {kind: abs(held[-1].get(kind, 0) - held[0].get(kind, 0)) for each in held for kind in each}
    least = max(changes.values(), default=0) * _STILL
    kinds = sorted(changes, key=lambda kind: (changes[kind] if changes[kind] > least else 0, -held[-1].get(kind, 0)))
    areas = [Area(title(kind), _COLORS.get(kind, _OTHER), [each.get(kind, 0) for each in held]) for kind in kinds]
    areas = [area for area in areas if any(area.amounts)]
    level = result.headroom.level if result.headroom else None
    lines, limits = [], [*_limits(level)]
    if level is not None:
        pinned = [next((each.pinned_bytes for each in look.levels if each.path == level.path), None) for look in looks]
        lines.append((f"cgroup {level.path}: what counts against the limit", pinned))
    amounts = [amount or 0 for _, each in lines for amount in each]
    highest = max([*amounts, *(look.total.rss_bytes for look in looks)])
    far = [name for name, amount in limits if amount > _FAR * highest]
    said = [f"Above this picture: {', '.join(far)}."] if far else []
    near = [(name, amount) for name, amount in limits if name not in far]
    return Stacked(_title(result.facts), [*notes, *said], near, (), [look.at_s for look in looks], areas, lines)


def _title(facts: Facts) -> str:
    return f"{who(facts)}: {size(facts.total.rss_bytes)} resident"
