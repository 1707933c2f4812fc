"""The first screen of `opskit jmx`: heap, collections, threads, file descriptors, CPU; memory pools, then collectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.jvm.object_names import properties_of
from opskit.quantities import duration, percent, plural, short_size, size, whole
from opskit.records import NamedTuple
from opskit.render.cells import or_dash
from opskit.render.fields import SHARE, SIZE, Field
from opskit.render.report import Block

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.jmx.result import Line, Result

    Beans = Mapping[str, Mapping[str, Line]]

_MEMORY, _THREADS, _SYSTEM = "java.lang:type=Memory", "java.lang:type=Threading", "java.lang:type=OperatingSystem"
_RUNTIME, _CLASSES, _COMPILER = "java.lang:type=Runtime", "java.lang:type=ClassLoading", "java.lang:type=Compilation"
_PAUSE = "pause"
_BUFFERS = ("java.nio", "BufferPool")


class Space(NamedTuple):
    """A memory pool, or the buffers of a kind. `growth_per_s`: with -w."""

    name: str
    used: float | None
    committed: float | None
    most: float | None
    growth_per_s: float | None

    @property
    def share(self) -> float | None:
        """Used, of its maximum."""
        return self.used / self.most if self.used is not None and self.most else None


class Collections(NamedTuple):
    """A collector. `per_s` and `busy`: with -w, collections a second and their share of the time."""

    name: str
    runs: float | None
    total_s: float | None
    last_s: float | None
    per_s: float | None
    busy: float | None
    cause: object  # of the last one: a text where it is known

    @property
    def noun(self) -> str:
        """What it counts: `ZGC Pauses`, `Shenandoah Cycles` and others."""
        return {"Pauses": _PAUSE, "Cycles": "cycle"}.get(self.name.rpartition(" ")[2], "collection")

    @property
    def mean_s(self) -> float | None:
        """The mean time of a collection."""
        return self.total_s / self.runs if self.total_s is not None and self.runs else None


def _size(name: str, title: str, rank: int = 0) -> Field[Any]:
    return Field(name, SIZE, title, show=or_dash(size), rank=rank)


_POOL: Sequence[Field[Space]] = (
    Field("name", title="memory pool", shrinks=30),
    _size("used", "used"),
    _size("committed", "committed", 3),
    _size("most", "maximum", 1),
    Field("share", SHARE, "used of it", show=or_dash(percent), rank=2),
)
_POOL_GROWTH: Field[Space] = Field("growth_per_s", SIZE, "growth/s", show=or_dash(size))


def by_bean(lines: Sequence[Line]) -> Beans:
    """The lines of each MBean by their paths."""
    found: dict[str, dict[str, Line]] = {}
    for line in lines:
        found.setdefault(line.bean, {})[line.path] = line
    return found


def verdict(result: Result) -> list[str]:
    """At most three sentences: memory, time in collections and compilation, and everything else."""
    beans = by_bean(result.lines)
    parts = (", ".join(each) for each in (_memory(beans), _times(beans), _others(beans)))
    return [f"{part}." for part in parts if part]


def blocks(result: Result, limit: int | None, *, watching: bool) -> list[Block[Any]]:
    """The memory pools, those of the heap first, and what buffers hold; at most `limit` rows."""
    beans = by_bean(result.lines)
    pools = [(name, bean) for name, bean in beans.items() if _kind(name) == ("java.lang", "MemoryPool")]
    pools.sort(key=lambda pool: _text(pool[1], "Type") != "HEAP")
    buffers = ((name, bean) for name, bean in beans.items() if _kind(name) == _BUFFERS and _of(bean, "MemoryUsed"))
    rows = [_space(name, bean) for name, bean in (*pools, *buffers)]
    fields = [*_POOL, _POOL_GROWTH] if watching else _POOL
    return [Block(fields, rows[:limit], len(rows), one_line=True)] if rows else []


def summary(result: Result, *, watching: bool) -> list[str]:
    """A line for each collector that ran."""
    rows = [row for row in _collectors(by_bean(result.lines)) if row.runs]
    return [_collector_line(row, watching=watching) for row in rows]


def _collector_line(row: Collections, *, watching: bool) -> str:
    """`G1 Young Generation: 18 collections, 60 ms, mean 3.3 ms, last 3.0 ms; 0.2/s, 0.3 % of the time`."""
    parts = [plural(int(row.runs or 0), row.noun)]
    if row.total_s is not None:
        parts += [_lasted(row.total_s), f"mean {_lasted(row.mean_s)}"]
    if row.last_s is not None:
        parts.append(f"last {_lasted(row.last_s)}" + (f" ({row.cause})" if row.cause else ""))
    line = f"{row.name}: {', '.join(parts)}"
    if watching and row.per_s is not None and row.busy is not None:
        line += f"; now {row.per_s:.1f}/s, {percent(row.busy)} of the time"
    return line


def _lasted(seconds: float | None) -> str:
    """The time of collections, which JMX has in whole milliseconds."""
    return duration(seconds) if seconds else "under 1 ms"


def _memory(beans: Beans) -> Iterator[str]:
    used, most = _number(beans, _MEMORY, "HeapMemoryUsage.used"), _number(beans, _MEMORY, "HeapMemoryUsage.max")
    if used is not None:
        limit = f" of {short_size(most)} ({percent(used / most)})" if most is not None and most > 0 else ""
        yield f"Heap {size(used)}{limit}"
    other = _number(beans, _MEMORY, "NonHeapMemoryUsage.used")
    if other is not None:
        yield f"non-heap {size(other)}"
    held = sum(_of(bean, "MemoryUsed") or 0 for name, bean in beans.items() if _kind(name) == _BUFFERS)
    if held:
        yield f"buffers {size(held)}"


def _times(beans: Beans) -> Iterator[str]:
    rows = _collectors(beans)
    rows = [row for row in rows if row.noun == _PAUSE] or rows  # the cycles of a concurrent collector stop nothing
    up_ms = _number(beans, _RUNTIME, "Uptime")
    if rows and all(row.runs is not None and row.total_s is not None for row in rows):
        runs, total_s = int(sum(row.runs or 0 for row in rows)), sum(row.total_s or 0 for row in rows)
        share = f" ({percent(total_s / (up_ms / 1000))} of {duration(up_ms / 1000)})" if up_ms else ""
        yield f"{plural(runs, rows[0].noun)} took {_lasted(total_s)}{share}" if runs else f"No {rows[0].noun} yet"
    elif up_ms is not None:
        yield f"Up {duration(up_ms / 1000)}"
    compiled_ms = _number(beans, _COMPILER, "TotalCompilationTime")
    if compiled_ms is not None:
        yield f"JIT compilation {duration(compiled_ms / 1000)}"


def _others(beans: Beans) -> Iterator[str]:
    threads = _number(beans, _THREADS, "ThreadCount")
    if threads is not None:
        pairs = (("DaemonThreadCount", "{} daemons"), ("PeakThreadCount", "peak {}"))
        values = ((_number(beans, _THREADS, path), form) for path, form in pairs)
        more = ", ".join(form.format(whole(value)) for value, form in values if value is not None)
        yield f"{plural(int(threads), 'thread')}{f' ({more})' if more else ''}"
    fds, most = (_number(beans, _SYSTEM, f"{each}FileDescriptorCount") for each in ("Open", "Max"))
    if fds is not None:
        yield f"{whole(fds)} fds{f' of {whole(most)}' if most is not None and most > 0 else ''}"
    load = _number(beans, _SYSTEM, "ProcessCpuLoad")
    if load is not None and load >= 0:
        yield f"{percent(load)} of the CPUs"
    elif (used_ns := _number(beans, _SYSTEM, "ProcessCpuTime")) is not None:
        yield f"CPU time {duration(used_ns / 1e9)}"
    classes = _number(beans, _CLASSES, "LoadedClassCount")
    if classes is not None:
        yield f"{whole(classes)} classes"


def _space(name: str, bean: Mapping[str, Line]) -> Space:
    is_buffer = _kind(name) == _BUFFERS
    title = properties_of(name)[1].get("name", name)
    used = "MemoryUsed" if is_buffer else "Usage.used"
    line = bean.get(used)
    most = None if is_buffer else _of(bean, "Usage.max")
    return Space(
        f"buffers: {title}" if is_buffer else title, _of(bean, used),
        _of(bean, "TotalCapacity" if is_buffer else "Usage.committed"),
        None if most is None or most < 0 else most, line.change_per_s if line else None,
    )  # fmt: skip


def _collectors(beans: Beans) -> list[Collections]:
    found = []
    for name, bean in beans.items():
        if _kind(name) == ("java.lang", "GarbageCollector"):
            total_ms, last_ms = _of(bean, "CollectionTime"), _of(bean, "LastGcInfo.duration")
            runs, time = bean.get("CollectionCount"), bean.get("CollectionTime")
            busy = time.change_per_s if time else None
            row = Collections(
                properties_of(name)[1].get("name", name), _of(bean, "CollectionCount"),
                None if total_ms is None else total_ms / 1000, None if last_ms is None else last_ms / 1000,
                runs.change_per_s if runs else None, None if busy is None else busy / 1000,
                _text(bean, "LastGcCause"),
            )  # fmt: skip
            found.append(row)
    return found


def _kind(name: str) -> tuple[str, str]:
    domain, properties, _ = properties_of(name)
    return domain, properties.get("type", "")


def _text(bean: Mapping[str, Line], path: str) -> object:
    line = bean.get(path)
    return None if line is None else line.value


def _number(beans: Beans, bean: str, path: str) -> float | None:
    return _of(beans.get(bean, {}), path)


def _of(bean: Mapping[str, Line], path: str) -> float | None:
    line = bean.get(path)
    value = line.value if line is not None and line.error is None else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
