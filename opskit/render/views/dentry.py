"""How the dentry cache is shown: columns for tables, lines for text, keys for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from opskit import shell
from opskit.quantities import percent, plain, size, whole
from opskit.render.report import Block, Column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.dentry import Cache, CgroupShare, Change, Facts, Owned, Sample
    from opskit.analysis.finding import Finding
    from opskit.render.pictures.chart import Chart


class Figure(NamedTuple):
    """A row of the first table: a count, an amount of memory, or both. `share` is 0 to 1 `of` something."""

    name: str
    number: int | None = None
    size_bytes: int | None = None
    share: float | None = None
    of: str = "RAM"
    counted: bool = False
    sized: bool = False
    per_min: float | None = None
    note: str = ""


def figures(facts: Facts, growth: Mapping[str, float | None]) -> list[Figure]:
    """What is in the caches, what of it can be given back, and what there is in all."""

    def counted(name: str, count: int | None, note: str) -> Figure:
        share = None if count is None or not facts.dentries else count / facts.dentries
        return Figure(name, count, share=share, of="dentries", counted=True, per_min=growth.get(name), note=note)

    def sized(name: str, amount: int | None, note: str, grows: float | None = None) -> Figure:
        return Figure(name, None, amount, facts.of_ram(amount), sized=True, per_min=grows, note=note)

    return [
        Figure(
            "dentries",
            facts.dentries,
            facts.dentry_slab_bytes,
            facts.of_ram(facts.dentry_slab_bytes),
            counted=True,
            sized=True,
            per_min=growth.get("dentries"),
            note=_merged_note(facts),
        ),
        counted("unused", facts.unused, "nothing holds them: can be given back"),
        counted("negative", facts.negative, "unused, and stand for files that are not there"),
        counted("in_use", facts.in_use, "held by open files, working directories and dentries below them"),
        Figure(
            "inodes",
            facts.inodes,
            facts.inode_slab_bytes,
            facts.of_ram(facts.inode_slab_bytes),
            counted=True,
            sized=True,
            note="the inode caches of all file systems",
        ),
        sized("reclaimable", facts.reclaimable_bytes, "SReclaimable: slab that can be given back, as far as nothing holds it", growth.get("reclaimable_bytes")),
        sized("unreclaimable", facts.unreclaimable_bytes, "SUnreclaim: pinned, no drop frees it"),
        sized("available", facts.available_bytes, "MemAvailable"),
        Figure("ram", size_bytes=facts.ram_bytes, sized=True, note="MemTotal"),
    ]  # fmt: skip


def _merged_note(facts: Facts) -> str:
    for cache in facts.caches or ():
        if cache.kind == "dentry" and (cache.shared_with or cache.name != "dentry"):
            others = ", ".join(name for name in cache.shared_with if name != "dentry")
            shared = f", its cache serves {others} too" if others else ""
            return f"slabinfo has them as {cache.name}{shared}"
    return "in the dentry slab"


def figure_columns(*, growing: bool) -> list[Column[Figure]]:
    """The columns of the first table."""
    found: list[Column[Figure]] = [
        Column("what", lambda row: row.name),
        Column("count", lambda row: Amount(row.number) if row.counted else None, _human, right=True),
        Column("bytes", lambda row: Amount(row.size_bytes, is_bytes=True) if row.sized else None, _human, right=True),
        Column("share", lambda row: None if row.share is None else _Share(row.share, row.of), _of, right=True),
    ]
    if growing:  # again and again on one screen: the numbers only
        found.append(Column("per min", lambda row: _growth(row.per_min, is_bytes=not row.counted), _human, right=True))
    else:
        found.append(Column("meaning", lambda row: row.note))
    return found


class Amount(NamedTuple):
    """A count or an amount of memory: plain digits for awk (str), grouped or in units for people."""

    number: float | None
    is_bytes: bool = False
    signed: bool = False

    def __str__(self) -> str:
        return plain(None if self.number is None else round(self.number))

    def human(self) -> str:
        """`432,690`, `82.0 MiB`, with a sign where it is a change."""
        if self.number is None:
            return "unknown"
        shown = size(abs(self.number)) if self.is_bytes else whole(abs(self.number))
        return shown if not self.signed else f"{'-' if self.number < 0 else '+'}{shown}"


def _human(amount: Amount | None) -> str:
    return "" if amount is None else amount.human()


class _Share(NamedTuple):
    share: float
    of: str

    def __str__(self) -> str:
        return f"{self.share * 100:.1f}"


def _growth(per_min: float | None, *, is_bytes: bool) -> Amount | None:
    return None if per_min is None else Amount(per_min, is_bytes, signed=True)


def _of(share: _Share | None) -> str:
    return "" if share is None else f"{percent(share.share)} of {share.of}"


def cache_columns(growth: Mapping[str, float | None] | None) -> list[Column[Cache]]:
    """The largest caches; with growth where several looks were taken."""
    found: list[Column[Cache]] = [
        Column("slab", lambda cache: cache.name),
        Column("bytes", lambda cache: cache.size_bytes, size, right=True),
        Column("objects", lambda cache: cache.objects, whole, right=True),
        Column("active", lambda cache: cache.active_objects, whole, right=True),
        Column("object bytes", lambda cache: cache.object_bytes, whole, right=True),
        Column("kind", lambda cache: cache.kind),
    ]
    if growth is not None:
        found.append(
            Column("bytes per min", lambda cache: _growth(growth.get(cache.name), is_bytes=True), _human, right=True)
        )
    found.append(Column("also", lambda cache: " ".join(cache.shared_with)))
    return found


OWNER_COLUMNS: list[Column[Owned]] = [
    Column("inodes of", lambda owned: owned.owner),
    Column("bytes", lambda owned: owned.size_bytes, size, right=True),
    Column("inodes", lambda owned: owned.objects, whole, right=True),
    Column("slabs", lambda owned: " ".join(owned.caches)),
]


def _limit(amount: int | None) -> str:
    return "none" if amount is None else size(amount)


CGROUP_V2_COLUMNS: list[Column[CgroupShare]] = [
    Column("slab reclaimable", lambda group: group.reclaimable_bytes, size, right=True),
    Column("own", lambda group: group.own_bytes, size, right=True),
    Column("memory", lambda group: group.usage_bytes, size, right=True),
    Column("limit", lambda group: group.limit_bytes, _limit, right=True),
    Column("memory cgroup", lambda group: group.path),
]

CGROUP_V1_COLUMNS: list[Column[CgroupShare]] = [
    Column("dentries and inodes", lambda group: group.dentry_inode_bytes, size, right=True),
    Column("kernel memory", lambda group: group.at_most_bytes, size, right=True),
    Column("memory", lambda group: group.usage_bytes, size, right=True),
    Column("limit", lambda group: group.limit_bytes, _limit, right=True),
    Column("memory cgroup", lambda group: group.path),
]


def cgroups_block(groups: Sequence[CgroupShare], top: int | None) -> Block[CgroupShare]:
    """The cgroups; in v1 only an upper bound is known of most."""
    is_v1 = any(group.at_most_bytes is not None for group in groups)
    shown = groups[:top] if top else groups
    return Block(CGROUP_V1_COLUMNS if is_v1 else CGROUP_V2_COLUMNS, shown, len(groups), "memory cgroups")


def settings_line(facts: Facts) -> str:
    """The knob, and how often caches were dropped since boot."""
    pressure = "unknown" if facts.vfs_cache_pressure is None else str(facts.vfs_cache_pressure)
    return (
        f"vm.vfs_cache_pressure is {pressure}; dropped since boot: dentries and inodes {_times(facts.drop_slab)}, "
        f"page cache {_times(facts.drop_pagecache)}"
    )


def _times(count: int | None) -> str:
    if count is None:
        return "unknown"
    return "once" if count == 1 else "never" if count == 0 else f"{count:,} times"


def watch_lines(samples: Sequence[Sample], growth: Mapping[str, float | None]) -> Iterator[str]:
    """A sample for awk: the seconds, the numbers, and their growth a minute."""
    last = samples[-1]
    heads = ["at_s", *last.numbers, *(f"{name}_per_min" for name in last.numbers)]
    rates = (None if rate is None else round(rate) for rate in growth.values())
    cells = [f"{last.at_s:.1f}", *map(plain, last.numbers.values()), *map(plain, rates)]
    widths = [max(len(head), len(cell)) for head, cell in zip(heads, cells)]
    for row in ([head.upper() for head in heads], cells):
        yield "  ".join(cell.rjust(width) for cell, width in zip(row, widths))


def facts_object(facts: Facts, groups: Sequence[CgroupShare]) -> dict[str, Any]:
    """The caches for JSON; null where a number is not known."""
    return {
        "dentries": facts.dentries,
        "unused": facts.unused,
        "negative": facts.negative,
        "dentry_slab_bytes": facts.dentry_slab_bytes,
        "inode_slab_bytes": facts.inode_slab_bytes,
        "reclaimable_bytes": facts.reclaimable_bytes,
        "unreclaimable_bytes": facts.unreclaimable_bytes,
        "available_bytes": facts.available_bytes,
        "ram_bytes": facts.ram_bytes,
        "vfs_cache_pressure": facts.vfs_cache_pressure,
        "drop_slab_count": facts.drop_slab,
        "drop_pagecache_count": facts.drop_pagecache,
        "slabs": None if facts.caches is None else [_cache_object(cache) for cache in facts.caches],
        "cgroups": [_cgroup_object(group) for group in groups],
    }


def _cache_object(cache: Cache) -> dict[str, Any]:
    return {
        "name": cache.name,
        "kind": cache.kind,
        "file_system": cache.owner,
        "bytes": cache.size_bytes,
        "objects": cache.objects,
        "active_objects": cache.active_objects,
        "object_bytes": cache.object_bytes,
        "shared_with": list(cache.shared_with),
    }


def _cgroup_object(group: CgroupShare) -> dict[str, Any]:
    return {
        "path": group.path,
        "slab_reclaimable_bytes": group.reclaimable_bytes,
        "own_slab_reclaimable_bytes": group.own_bytes,
        "dentry_inode_bytes": group.dentry_inode_bytes,
        "kernel_bytes": group.at_most_bytes,
        "usage_bytes": group.usage_bytes,
        "limit_bytes": group.limit_bytes,
    }


def sample_object(one: Sample) -> dict[str, Any]:
    """One sample of a watch for JSON."""
    return {"at_s": round(one.at_s, 3), **one.numbers}


def finding_line(finding: Finding) -> str:
    """A finding in a line: its code, what was found, what to type."""
    fix = f"; {finding.fix}" if finding.fix else ""
    return f"{finding.severity} {finding.code} ({finding.subject}): {finding.summary}{fix}"


CHANGE_COLUMNS: list[Column[Change]] = [
    Column("what", lambda change: change.name),
    Column("before", lambda change: Amount(change.before, change.is_bytes), _human, right=True),
    Column("after", lambda change: Amount(change.after, change.is_bytes), _human, right=True),
    Column("change", lambda change: Amount(change.by, change.is_bytes, signed=True), _human, right=True),
]


class LookerRow(NamedTuple):
    """A process that looks for absent files, as it is shown. `share` is of all failed lookups, 0 to 1."""

    pid: int | None
    command: str
    user: str | None
    unit: str | None
    processes: int
    lookups: int
    per_s: float
    share: float
    calls: Mapping[str, int]
    paths: Sequence[str]
    ended: bool = False


class _Pid(NamedTuple):
    pid: int | None
    ended: bool

    def __str__(self) -> str:
        return plain(self.pid)

    def human(self) -> str:
        words = ([] if self.pid is None else [str(self.pid)]) + ["ended"] * self.ended
        return " ".join(words)


LOOKER_COLUMNS: list[Column[LookerRow]] = [
    Column("pid", lambda row: _Pid(row.pid, row.ended), _Pid.human, right=True),
    Column("failed lookups", lambda row: row.lookups, whole, right=True),
    Column("per s", lambda row: Amount(row.per_s), _human, right=True),
    Column("share", lambda row: _Share(row.share, "all"), lambda share: percent(share.share), right=True),
    Column("processes", lambda row: row.processes, whole, right=True),
    Column("user", lambda row: row.user),
    Column("calls", lambda row: ",".join(list(row.calls)[:3]), lambda calls: calls.replace(",", ", ")),
    Column("unit", lambda row: row.unit),
    Column("command", lambda row: row.command),
    Column("looks for", lambda row: row.paths[0] if row.paths else None),
]


def looker_object(row: LookerRow) -> dict[str, Any]:
    """One process for JSON."""
    return {
        "pid": row.pid,
        "ended": row.ended,
        "command": row.command,
        "user": row.user,
        "unit": row.unit,
        "processes": row.processes,
        "failed_lookups": row.lookups,
        "failed_lookups_per_s": round(row.per_s, 1),
        "share": round(row.share, 4),
        "calls": dict(row.calls),
        "paths": list(row.paths),
    }


def culprit_lines(rows: Sequence[LookerRow], seconds: float, total: int, grown: int | None) -> list[str]:
    """The sentences about who looks for absent files, and how to see which."""
    if not rows:
        return [
            f"No lookup failed in {seconds:.1f} s: whoever made the negative entries is not at it now; "
            "look longer, or when it runs: opskit dentry --culprit 60s"
        ]
    first = rows[0]
    who = (
        f"{first.command} ({first.pid}{', ended' * first.ended})"
        if first.pid is not None
        else f"{first.command} ({first.processes:,} processes, ended)"
    )
    grew = (
        "" if grown is None else f"; negative entries {'grew' if grown >= 0 else 'shrank'} by {abs(grown):,} meanwhile"
    )
    lines = [
        f"{who} made {percent(first.share)} of the {total:,} failed lookups in {seconds:.1f} s: "
        f"{first.per_s:,.0f} a second{grew}."
    ]
    if first.paths:
        lines.append(f"It looks for names like {', '.join(first.paths)}")
    if not first.ended:
        lines.append(f"See all paths: {shell.command('strace', '-f', '-Z', '-e', 'trace=%file', '-p', first.pid)}")
    return lines


_MOST_LINES = 8  # more cannot be told apart


def chart(facts: Facts, samples: Sequence[Sample], top: int | None) -> Chart:
    """The largest slabs: now as bars; over the samples of a watch as lines, chosen by their peaks."""
    from opskit.render.pictures.chart import BarChart, Line, LineChart

    caches = [cache for cache in facts.caches or () if cache.size_bytes]
    if len(samples) < 2:
        return BarChart("The largest slabs", [(cache.name, cache.size_bytes) for cache in caches[:top]], signed=False)
    peaks: dict[str, int] = {}
    for one in samples:
        for name, amount in one.cache_bytes.items():
            peaks[name] = max(amount, peaks.get(name, 0))
    names = sorted(peaks, key=lambda name: -peaks[name])[: min(top or _MOST_LINES, _MOST_LINES)]
    names += [cache.name for cache in caches if cache.kind == "dentry" and cache.name not in names]
    return LineChart(
        "The largest slabs over time",
        [Line(name, [(one.at_s, one.cache_bytes.get(name, 0)) for one in samples]) for name in names],
    )


def change_chart(rows: Sequence[Change]) -> Chart:
    """What a drop changed, in bytes."""
    from opskit.render.pictures.chart import BarChart

    return BarChart(
        "What the drop changed", [(row.name, row.by) for row in rows if row.is_bytes and row.by is not None]
    )


def looker_chart(rows: Sequence[LookerRow]) -> Chart:
    """Failed lookups of each process."""
    from opskit.render.pictures.chart import BarChart

    bars = [(f"{row.command} ({row.pid or 'ended'})", row.lookups) for row in rows]
    return BarChart("Failed lookups by process", bars, unit="count", signed=False)
