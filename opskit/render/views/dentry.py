"""How the dentry and inode caches are shown."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.analysis.dentry.caches import inodes_by_owner, of_kind
from opskit.analysis.dentry.judge import little_to_free, times
from opskit.analysis.dentry.usage import WATCHED, share
from opskit.quantities import percent, plain, size, whole
from opskit.records import NamedTuple
from opskit.render.fields import COUNT, FLAG, NUMBER, SIZE, TEXT, Field, Kind, list_of, map_of, record, records
from opskit.render.report import Block, Report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.dentry.caches import Cache, Owned
    from opskit.analysis.dentry.drop import Change, Drop
    from opskit.analysis.dentry.judge import Result
    from opskit.analysis.dentry.lookups import Looker
    from opskit.analysis.dentry.usage import CgroupShare, Sample, Usage
    from opskit.render.pictures.chart import Chart
    from opskit.render.report import About

DEFAULT_TOP = 10
_MOST_LINES = 8  # of a picture
INTERRUPTED = 130


class Cell(NamedTuple):
    """A value with a form for awk and one for tables."""

    awk: str
    human: str

    def __str__(self) -> str:
        return self.awk


CELL = Kind({}, lambda cell: "" if cell is None else cell.human, right=True)


def _amount(number: float | None, *, is_bytes: bool = False, signed: bool = False) -> Cell:
    """`432690` and `432,690`, or `82.0 MiB`; with a sign where it is a change."""
    if number is None:
        return Cell("-", "unknown")
    sign = "" if not signed else "-" if number < 0 else "+"
    return Cell(plain(round(number)), sign + (size if is_bytes else whole)(abs(number)))


def _part(part: float | None, of: str = "") -> Cell | None:
    return None if part is None else Cell(f"{part * 100:.1f}", percent(part) + of)


class Figure(NamedTuple):
    """A row of the first table: the names of a count and of an amount of memory in Usage, "" for none."""

    name: str
    counted: str
    sized: str
    note: str
    of: str = "RAM"


_FIGURES = (
    Figure("unused", "unused", "", "can be dropped", "them"),
    Figure("negative", "negative", "", "files that do not exist", "them"),
    Figure("in_use", "in_use", "", "held by open files", "them"),
    Figure("inodes", "inodes", "inode_slab_bytes", "of all file systems"),
    Figure("reclaimable", "", "reclaimable_bytes", "SReclaimable"),
    Figure("unreclaimable", "", "unreclaimable_bytes", "SUnreclaim: not dropped"),
    Figure("available", "", "available_bytes", "MemAvailable"),
    Figure("ram", "", "ram_bytes", "MemTotal", ""),
)


def _figures(result: Result) -> Block[Figure]:
    usage, growth = result.usage, result.growth

    def part(row: Figure) -> Cell | None:
        total = usage.ram_bytes if row.sized else usage.dentries
        return _part(share(getattr(usage, row.sized or row.counted), total), f" of {row.of}") if row.of else None

    def per_min(row: Figure) -> Cell | None:
        found = (growth or {}).get(row.counted or row.sized)
        return None if found is None else _amount(found, is_bytes=not row.counted, signed=True)

    def amount(name: str, *, is_bytes: bool = False) -> Cell | None:
        return _amount(getattr(usage, name), is_bytes=is_bytes) if name else None

    rows = [Figure("dentries", "dentries", "dentry_slab_bytes", _dentry_note(usage)), *_FIGURES]
    fields: list[Field[Figure]] = [
        Field("what", TEXT, "what", attrgetter("name")),
        Field("count", CELL, "count", lambda row: amount(row.counted)),
        Field("bytes", CELL, "bytes", lambda row: amount(row.sized, is_bytes=True)),
        Field("share", CELL, "share", part),
        Field("", CELL, "per min", per_min) if growth else Field("meaning", TEXT, "meaning", attrgetter("note")),
    ]
    return Block(fields, rows, len(rows))


def _dentry_note(usage: Usage) -> str:
    for cache in of_kind(usage.caches, "dentry"):
        if cache.shared_with or cache.name != "dentry":
            others = ", ".join(name for name in cache.shared_with if name != "dentry")
            return f"slabinfo has them as {cache.name}{f', its cache serves {others} too' if others else ''}"
    return "in the dentry slab"


SLABS: Sequence[Field[Cache]] = (
    Field("name", TEXT, "slab"),
    Field("bytes", SIZE, "bytes", attrgetter("size_bytes")),
    Field("objects", COUNT, "objects"),
    Field("active_objects", COUNT, "active"),
    Field("object_bytes", COUNT, "object bytes"),
    Field("kind", TEXT, "kind", help="dentry, inode or other"),
    Field("file_system", value=attrgetter("owner"), help="of an inode cache"),
    Field("shared_with", list_of(TEXT), help="other names of this cache"),
    Field("also", TEXT, "also", lambda cache: " ".join(cache.shared_with), json=False),
)
OWNERS: Sequence[Field[Owned]] = (
    Field("owner", TEXT, "inodes of"),
    Field("bytes", SIZE, "bytes", attrgetter("size_bytes")),
    Field("objects", COUNT, "inodes"),
    Field("slabs", TEXT, "slabs", lambda owned: " ".join(owned.caches)),
)
_BOUND = "cgroup v1: an upper bound of its slabs"
_MORE = "-n 10 adds the largest slabs, inode caches and memory cgroups"
LIMIT = Kind({"type": "integer"}, lambda limit: "none" if limit is None else size(limit), right=True)
CGROUPS: Sequence[Field[CgroupShare]] = (
    Field("slab_reclaimable_bytes", SIZE, "slab reclaimable", attrgetter("group.slab_reclaimable_bytes")),
    Field("own_slab_reclaimable_bytes", SIZE, "own", help="without the cgroup's children"),
    Field("dentry_inode_bytes", SIZE, "dentries and inodes", help="cgroup v1 up to Linux 5.8"),
    Field("kernel_bytes", SIZE, "kernel memory", attrgetter("group.kernel_bytes"), help=_BOUND),
    Field("usage_bytes", SIZE, "memory", attrgetter("group.usage_bytes")),
    Field("limit_bytes", LIMIT, "limit", attrgetter("group.limit_bytes")),
    Field("path", TEXT, "memory cgroup", attrgetter("group.path")),
)
LOOKERS: Sequence[Field[Looker]] = (
    Field("pid", COUNT, value=attrgetter("pid"), help="null for all ended processes of a command"),
    Field("ended", FLAG),
    Field("", CELL, "pid", lambda row: Cell(plain(row.pid), f"{row.pid or ''}{' ended' * row.ended}".strip()), json=False),
    Field("failed_lookups", COUNT, "failed lookups", attrgetter("lookups")),
    Field("", COUNT, "per s", lambda row: round(row.per_s), json=False),
    Field("failed_lookups_per_s", NUMBER, value=lambda row: round(row.per_s, 1)),
    Field("", CELL, "share", lambda row: _part(row.share), json=False),
    Field("share", NUMBER, value=lambda row: round(row.share, 4), help="of all failed lookups, 0 to 1"),
    Field("processes", COUNT, "processes"),
    Field("user", TEXT, "user"),
    Field("", CELL, "calls", lambda row: Cell(",".join([*row.calls][:3]), ", ".join([*row.calls][:3])), right=False, json=False),
    Field("calls", map_of(COUNT), help="failed lookups by system call"),
    Field("unit", TEXT, "unit", below=lambda row: f"{row.command} ({row.pid or 'ended'})"),
    Field("command", TEXT, "command"),
    Field("", TEXT, "looks for", lambda row: row.paths[0] if row.paths else None, json=False,
          below=lambda row: f"{row.command} ({row.pid or 'ended'})"),
    Field("paths", list_of(TEXT), help="examples of what it looks up"),
)  # fmt: skip
CHANGES: Sequence[Field[Change]] = (
    Field("what", TEXT, "what", attrgetter("name")),
    Field("before", CELL, "before", lambda row: _amount(row.before, is_bytes=row.is_bytes)),
    Field("after", CELL, "after", lambda row: _amount(row.after, is_bytes=row.is_bytes)),
    Field("change", CELL, "change", lambda row: _amount(row.by, is_bytes=row.is_bytes, signed=True)),
)
DROP: Sequence[Field[Drop]] = (
    Field("level", value=attrgetter("done.level"), help="dentries, pagecache or all"),
    Field("written", COUNT, value=attrgetter("done.written")),
    Field("synced", FLAG, value=attrgetter("done.synced"), help="whether sync ended in time"),
    Field("sync_s", NUMBER, value=lambda drop: round(drop.done.sync_s, 3)),
    Field("drop_s", NUMBER, value=lambda drop: round(drop.done.drop_s or 0, 3)),
    Field("interrupted", FLAG, value=attrgetter("done.interrupted")),
    Field("freed_bytes", SIZE, help="negative where the caches grew faster"),
    Field("before", map_of(COUNT), value=lambda drop: {row.name: row.before for row in drop.changes}),
    Field("after", map_of(COUNT), value=lambda drop: {row.name: row.after for row in drop.changes}),
)
SAMPLES: Sequence[Field[Sample]] = (
    Field("at_s", NUMBER, value=lambda one: round(one.at_s, 3), help="since the watch began"),
    *(Field(name, COUNT, value=lambda one, name=name: one.numbers[name]) for name in WATCHED),  # type: ignore[misc]
)
_BYTES = ("dentry_slab", "inode_slab", "reclaimable", "unreclaimable", "available", "ram")
_COUNTS = ("dentries", "unused", "negative", "vfs_cache_pressure", "drop_slab_count", "drop_pagecache_count")
DOCUMENT: Sequence[Field[Result]] = (
    *(Field(name, COUNT, value=attrgetter(f"usage.{name}")) for name in _COUNTS),
    *(Field(f"{name}_bytes", SIZE, value=attrgetter(f"usage.{name}_bytes")) for name in _BYTES),
    Field("slabs", records(SLABS), value=attrgetter("usage.caches"), help="largest first"),
    Field("cgroups", records(CGROUPS), value=attrgetter("usage.groups"), help="largest own slab first"),
    Field("ways", list_of(TEXT), help="commands that help, the gentlest first"),
    Field("growth_per_min", map_of(NUMBER), value=attrgetter("growth"), help="with -w"),
    Field("samples", records(SAMPLES), help="with -w"),
    Field("culprits", records(LOOKERS), value=lambda result: result.lookups and result.lookups.lookers),
    Field("culprit_s", NUMBER, value=lambda result: result.lookups and round(result.lookups.seconds, 3)),
    Field("failed_lookups", COUNT, value=lambda result: result.lookups and result.lookups.total),
    Field("failed_lookups_counted", COUNT, value=lambda result: result.lookups and result.lookups.counted),
    Field("negative_growth", COUNT, help="of negative dentries during the trace"),
    Field("drop", record(DROP)),
)


def report(about: About, result: Result, top: int | None, *, short: bool = False) -> Report:
    """A look, the last one of a watch, a trace of failed lookups, or a drop. `top`: -n; `short`: the first table only."""
    limit = DEFAULT_TOP if top is None else top or None
    action = result.lookups or (result.drop and result.drop.done)
    return Report(
        about,
        _blocks(result, limit)[: 1 if short else None],
        result.verdict,
        result.notes if action else [*result.ways, *result.notes],
        text=partial(_watch_lines, result) if result.samples else None,
        summary=[] if result.drop else [_settings(result.usage), *([_MORE] if short and not result.lookups else ())],
        chart=partial(_chart, result, limit),
        findings=result.findings,
        document=(DOCUMENT, result),
        exit_code=INTERRUPTED if action and action.interrupted else None,
    )


def _blocks(result: Result, limit: int | None) -> list[Block[Any]]:
    if result.drop:
        return [Block(CHANGES, result.drop.changes, len(result.drop.changes))]
    if result.lookups:
        lookers = result.lookups.lookers
        return [Block(LOOKERS, lookers[:limit], len(lookers), "processes that look up absent files"), _figures(result)]
    return [_figures(result), *_caches(result, limit)]


def _caches(result: Result, limit: int | None) -> Iterator[Block[Any]]:
    usage, growth = result.usage, result.cache_growth or {}
    if usage.caches is not None:
        held = [cache for cache in usage.caches if cache.size_bytes]
        fields = SLABS
        if growth:
            rate = partial(_amount, is_bytes=True, signed=True)
            per_min: Field[Cache] = Field("", CELL, "bytes per min", lambda cache: rate(growth.get(cache.name)))
            fields = (*SLABS[:-1], per_min, SLABS[-1])
        yield Block(fields, held[:limit], len(held), "largest slabs")
        if not result.growth:  # a live table fits a screen
            owned = inodes_by_owner(usage.caches)
            yield Block(OWNERS, owned[:limit], len(owned), "inode caches by file system")
    if usage.groups and not result.growth:
        is_v1 = any(one.group.kernel_bytes is not None for one in usage.groups)
        shown = CGROUPS[2:] if is_v1 else (*CGROUPS[:2], *CGROUPS[4:])
        yield Block(shown, usage.groups[:limit], len(usage.groups), "memory cgroups")


_DROPS = {"dentries": "dentries and inodes that nothing holds", "pagecache": "page cache that is not dirty"}
_DROPS["all"] = ", and ".join(_DROPS.values())


def plan(usage: Usage, level: str, number: int, path: str, sync_timeout_s: float) -> list[str]:
    """What a drop will do, for the question whether to go ahead."""
    lines = [
        f"This will sync (waiting {sync_timeout_s:g} s at most), then write {number} to {path}: frees {_DROPS[level]}, "
        f"on the whole host. Reclaimable slab is {size(usage.reclaimable_bytes)} now.",
        "What is looked up or read next comes from disk again; nothing is lost.",
    ]
    return [*lines, *(() if level == "pagecache" else little_to_free(usage))]


def _settings(usage: Usage) -> str:
    pressure = "unknown" if usage.vfs_cache_pressure is None else str(usage.vfs_cache_pressure)
    return (
        f"vm.vfs_cache_pressure is {pressure}; dropped since boot: dentries and inodes {times(usage.drop_slab_count)}, "
        f"page cache {times(usage.drop_pagecache_count)}"
    )


def _watch_lines(result: Result) -> Iterator[str]:
    """A sample for awk: the seconds, the numbers, and their growth per minute."""
    last = (result.samples or ())[-1]
    rates = (None if rate is None else round(rate) for rate in (result.growth or {}).values())
    heads = ["at_s", *last.numbers, *(f"{name}_per_min" for name in last.numbers)]
    cells = [f"{last.at_s:.1f}", *map(plain, last.numbers.values()), *map(plain, rates)]
    widths = [max(len(head), len(cell)) for head, cell in zip(heads, cells)]
    for row in ([head.upper() for head in heads], cells):
        yield "  ".join(cell.rjust(width) for cell, width in zip(row, widths))


def _chart(result: Result, limit: int | None) -> Chart:
    """What the drop changed, or the lookers, or the largest slabs: bars; lines of a watch's slabs, chosen by their peaks."""
    from opskit.render.pictures.chart import BarChart, Line, LineChart

    if result.drop is not None:
        changes = [(row.name, row.by) for row in result.drop.changes if row.is_bytes and row.by is not None]
        return BarChart("What the drop changed", changes)
    if result.lookups is not None:
        lookers = [(f"{row.command} ({row.pid or 'ended'})", row.lookups) for row in result.lookups.lookers[:limit]]
        return BarChart("Failed lookups by process", lookers, unit="count", signed=False)
    caches = [cache for cache in result.usage.caches or () if cache.size_bytes]
    samples = result.samples or ()
    if len(samples) < 2:
        return BarChart("The largest slabs", [(cache.name, cache.size_bytes) for cache in caches[:limit]], signed=False)
    peaks: dict[str, int] = {}
    for one in samples:
        for name, amount in one.cache_bytes.items():
            peaks[name] = max(amount, peaks.get(name, 0))
    names = sorted(peaks, key=lambda name: -peaks[name])[: min(limit or _MOST_LINES, _MOST_LINES)]
    names += [cache.name for cache in of_kind(caches, "dentry") if cache.name not in names]
    lines = [Line(name, [(one.at_s, one.cache_bytes.get(name, 0)) for one in samples]) for name in names]
    return LineChart("The largest slabs over time", lines)
