"""The values of a JVM, named once: columns of the tables, keys of the JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.jvm.perfdata.counters import collector
from opskit.quantities import percent, short_duration, short_size, size, sizes
from opskit.render.cells import at
from opskit.render.fields import COUNT, FLAG, ID, NUMBER, SECONDS, SIZE, TEXT, Field, records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.analysis.jvms import Row, Sample


def _jdk(row: Row) -> str | None:
    return perf_text("java.property.java.version")(row) or row.seen.release


def _collector(row: Row) -> str | None:
    return collector(row.seen.jvm.perf) if row.seen.jvm.perf else None


def _jdk_cell(row: Row) -> str:
    kind = row.seen.jvm.kind
    words = (_jdk(row) or "unknown",) if kind == "HotSpot" else (kind, _jdk(row))
    return " ".join(word for word in (*words, _collector(row)) if word)


def _pid_cell(row: Row) -> str:
    jvm = row.seen.jvm
    return str(jvm.pid) if jvm.ns_pid == jvm.pid else f"{jvm.pid} ({jvm.ns_pid} inside)"


def _heap_cell(row: Row) -> str:
    heap = row.seen.reading.heap
    if heap is None:
        return "unknown"
    capacities = heap.committed_bytes, heap.max_bytes
    return f"unknown / {sizes(capacities)}" if heap.used_bytes is None else sizes((heap.used_bytes, *capacities))


def _memory_cell(row: Row) -> str:
    rss, memory = row.seen.reading.rss_bytes, row.seen.memory
    if rss is None:
        return "unknown"
    if memory is None or memory.limit_bytes is None:
        return f"{size(rss)} / {'unknown' if memory is None else 'none'}"
    share = "" if row.memory_percent is None else f", {_percent(row.memory_percent)}"
    return sizes((rss, memory.limit_bytes)) + share


def _cpu_cell(row: Row) -> str:
    cpu = row.seen.reading.cpu
    quota = "unknown" if cpu is None else "none" if cpu.cpus is None else f"{cpu.cpus * 100:g} %"
    return f"{_percent(row.shares.cpu_percent)} / {quota}"


def _short(share: float | None) -> str:
    """A share of the time in few characters; "-" if it is unknown."""
    return "-" if share is None else "<1 %" if 0 < share < 1 else f"{share:.0f} %"


def _heap_of_max(row: Row) -> str:
    """`83 / 256 MiB`; "-" for what is unknown."""
    heap = row.seen.reading.heap
    if heap is None:
        return "-"
    return f"- / {sizes((heap.max_bytes,))}" if heap.used_bytes is None else sizes((heap.used_bytes, heap.max_bytes))


def _rss_of_limit(row: Row) -> str:
    rss, memory = row.seen.reading.rss_bytes, row.seen.memory
    if rss is None or memory is None or memory.limit_bytes is None:
        return "-" if rss is None else sizes((rss,))
    return sizes((rss, memory.limit_bytes))


def _cpu_of_quota(row: Row) -> str:
    cpu, share = row.seen.reading.cpu, row.shares.cpu_percent
    used = "-" if share is None else f"{share:.0f}"
    return f"{used} %" if cpu is None or cpu.cpus is None else f"{used} / {cpu.cpus * 100:g} %"


def _throttled_cell(row: Row) -> str:
    cpu = row.seen.reading.cpu
    return "no quota" if cpu is not None and cpu.cpus is None else _percent(row.shares.throttled_percent)


def _percent(number: float | None) -> str:
    return percent(None if number is None else number / 100)


def attach(row: Row) -> str | None:
    """`yes`, or `no:` with the reason."""
    attach = row.seen.attach
    return attach and ("yes" if attach.why is None else f"no:{attach.code}")


def _attach_cell(row: Row) -> str:
    return (attach(row) or "unknown").replace("no:", "no: ").replace("-", " ")


def where(row: Row) -> str:
    """Its container, pod or unit."""
    return row.seen.place.label if row.seen.place else ""


def rounded(path: str, digits: int) -> Callable[[Any], float | None]:
    """The value at a path, rounded."""
    value = at(path)
    return lambda row: None if value(row) is None else round(value(row), digits)


def _is_set(path: str, name: str) -> Callable[[Row], bool | None]:
    limit = at(path)
    return lambda row: None if limit(row) is None else getattr(limit(row), name) is not None


def _path_if(path: str, name: str) -> Callable[[Row], str | None]:
    is_set, cgroup = _is_set(path, name), at(f"{path}.path")
    return lambda row: cgroup(row) if is_set(row) else None


def perf_text(name: str) -> Callable[[Row], str | None]:
    """A counter that is a text."""
    return lambda row: row.seen.jvm.perf.text(name) if row.seen.jvm.perf else None


def _counter(name: str) -> Callable[[Row], int | None]:
    """A counter; None where it is negative, as only a damaged file has it."""

    def value(row: Row) -> int | None:
        number = row.seen.jvm.perf.number(name) if row.seen.jvm.perf else None
        return number if number is None or number >= 0 else None

    return value


def memory_limit(row: Row) -> int | str | None:
    """Bytes, or `none`; None: unknown."""
    memory = row.seen.memory
    return memory and ("none" if memory.limit_bytes is None else memory.limit_bytes)


def column(title: str, value: Callable[[Row], object], *, right: bool = False) -> Field[Row]:
    """A column that JSON does not have."""
    return Field(title, TEXT, title, value, right=right, json=False)


def _whole(path: str) -> Callable[[Any], int | None]:
    value = at(path)
    return lambda row: None if value(row) is None else round(value(row))


def _per_s(value: int | None) -> str:
    return "-" if value is None else f"{short_size(value)}/s"


def _short_per_s(path: str) -> Callable[[Any], str]:
    value = _whole(path)
    return lambda row: _per_s(value(row))


def _freed(row: Row) -> float | None:
    return None if row.rates is None or row.rates.freed is None else round(100 * row.rates.freed, 2)


_RATES: Sequence[Field[Any]] = (
    Field(
        "allocation_bytes_per_s",
        SIZE,
        "alloc/s",
        _whole("rates.allocation_per_s"),
        show=_per_s,
        help="null with one look",
    ),
    Field(
        "promotion_bytes_per_s",
        SIZE,
        "promo/s",
        _whole("rates.promotion_per_s"),
        show=_per_s,
        help="to the old generation",
    ),
    Field("young_freed_percent", NUMBER, value=_freed, help="of the allocated bytes, by young collections"),
)
ROW: Sequence[Field[Row]] = (
    Field("pid", ID, "pid", at("seen.jvm.pid")),
    Field("ns_pid", ID, "ns pid", at("seen.jvm.ns_pid"), help="in its own PID namespace"),
    Field("start_ticks", ID, value=at("seen.jvm.start_ticks")),
    Field("user", TEXT, "user", at("seen.user")),
    Field("uid", ID, value=at("seen.jvm.uid"), help="effective uid"),
    Field("main", TEXT, "main", at("seen.jvm.main"), help="main class, module or jar"),
    Field("kind", value=at("seen.jvm.kind"), help="HotSpot, OpenJ9 or native image"),
    Field("jdk_version", TEXT, "jdk", _jdk),
    Field("jdk_vendor", value=perf_text("java.property.java.vm.vendor")),
    Field("collector", TEXT, "collector", _collector),
    Field("container", value=at("seen.place.container"), help="its ID or name"),
    Field("container_runtime", value=at("seen.place.runtime")),
    Field("pod", value=at("seen.place.pod")),
    Field("unit", value=at("seen.place.unit"), help="systemd unit"),
    Field("cgroup", value=at("seen.place.path")),
    Field("uptime_s", NUMBER, value=rounded("seen.reading.age_s", 2)),
    Field("cpu_percent", NUMBER, value=rounded("shares.cpu_percent", 2), help="100 is one CPU"),
    Field("heap_used_bytes", SIZE, "heap used", at("seen.reading.heap.used_bytes")),
    Field("heap_committed_bytes", SIZE, "heap committed", at("seen.reading.heap.committed_bytes")),
    Field("heap_max_bytes", SIZE, "heap max", at("seen.reading.heap.max_bytes")),
    Field("rss_bytes", SIZE, "rss", at("seen.reading.rss_bytes")),
    Field("memory_limited", FLAG, value=_is_set("seen.memory", "limit_bytes"), help="whether a cgroup has a limit"),
    Field("memory_limit_bytes", SIZE, value=at("seen.memory.limit_bytes")),
    Field("memory_limit_cgroup", value=_path_if("seen.memory", "limit_bytes")),
    Field("memory_cgroup_usage_bytes", SIZE, value=at("seen.memory.usage_bytes"), help="with page cache"),
    Field("memory_percent", NUMBER, value=rounded("memory_percent", 2), help="resident memory of the limit"),
    Field("cpu_limited", FLAG, value=_is_set("seen.reading.cpu", "cpus"), help="whether a cgroup has a quota"),
    Field("cpu_limit_cpus", NUMBER, value=at("seen.reading.cpu.cpus")),
    Field("cpu_limit_cgroup", value=_path_if("seen.reading.cpu", "cpus")),
    Field("throttled_percent", NUMBER, value=rounded("shares.throttled_percent", 2), help="of the scheduler periods"),
    Field("throttled_s", NUMBER, value=at("seen.reading.cpu.throttled_s"), help="since the cgroup's creation"),
    Field("gc_percent", NUMBER, value=rounded("shares.gc_percent", 3), help="of the time, in GC pauses"),
    Field("gc_collections", COUNT, "collections", at("seen.reading.gc.collections")),
    Field("gc_pauses", COUNT, value=at("seen.reading.gc.pauses")),
    Field("gc_pause_s", NUMBER, value=rounded("seen.reading.gc.pause_s", 6)),
    Field("stopped_percent", NUMBER, value=rounded("shares.stopped_percent", 3), help="of the time, at safepoints"),
    *_RATES,
    Field("safepoints", COUNT, value=_counter("sun.rt.safepoints")),
    Field("stopped_s", NUMBER, value=rounded("seen.reading.stopped_s", 6)),
    Field("threads", COUNT, "threads", at("seen.reading.threads")),
    Field("java_threads", COUNT, value=_counter("java.threads.live")),
    Field("attach", FLAG, value=lambda row: row.seen.attach and row.seen.attach.why is None),
    Field("attach_code", value=at("seen.attach.code")),
    Field("attach_why", value=at("seen.attach.why")),
    Field("no_counters", value=lambda row: row.seen.jvm.no_perf and str(row.seen.jvm.no_perf), help="the reason"),
)
IDENTITY: Sequence[Field[Row]] = (
    column("pid", _pid_cell, right=True),
    Field("user", TEXT, "user", at("seen.user")),
    Field("main", TEXT, "main class or jar", at("seen.jvm.main")),
    column("JDK", _jdk_cell),
    column("container, pod or unit", where),
    Field("uptime", SECONDS, "uptime", at("seen.reading.age_s"), show=short_duration),
    Field("threads", COUNT, "threads", at("seen.reading.threads")),
    column("attach", _attach_cell),
)
USE: Sequence[Field[Row]] = (
    Field("pid", ID, "pid", at("seen.jvm.pid")),
    column("CPU / quota", _cpu_cell, right=True),
    column("throttled", _throttled_cell, right=True),
    column("heap used / committed / max", _heap_cell, right=True),
    column("RSS / limit", _memory_cell, right=True),
    Field("gc", NUMBER, "GC pauses", at("shares.gc_percent"), show=_percent),
    Field("collections", COUNT, "GCs", at("seen.reading.gc.collections")),
    Field("stopped", NUMBER, "stopped", at("shares.stopped_percent"), show=_percent),
    *_RATES[:2],
)
_LINE: dict[str, Field[Row]] = {
    field.name: field
    for field in (
        Field("pid", ID, "pid", at("seen.jvm.pid")),
        Field("main", TEXT, "main", at("seen.jvm.main"), shrinks=10),
        Field("cpu", NUMBER, "CPU", _cpu_of_quota, rank=1),
        Field("throttled", NUMBER, "throttled", lambda row: _short(row.shares.throttled_percent), rank=9),
        Field("heap", SIZE, "heap / max", _heap_of_max, show=str, rank=2),
        Field("rss", SIZE, "RSS / limit", _rss_of_limit, show=str, rank=4),
        Field("gc", NUMBER, "GC", lambda row: _short(row.shares.gc_percent), rank=3),
        Field("collections", COUNT, "GCs", at("seen.reading.gc.collections"), rank=11),
        Field("stopped", NUMBER, "stopped", lambda row: _short(row.shares.stopped_percent), rank=6),
        Field("threads", COUNT, "threads", at("seen.reading.threads"), rank=10),
        Field("alloc", TEXT, "alloc", _short_per_s("rates.allocation_per_s"), right=True, rank=14),
        Field("promo", TEXT, "promo", _short_per_s("rates.promotion_per_s"), right=True, rank=15),
        Field("attach", TEXT, "attach", _attach_cell, rank=5),
        Field("where", TEXT, "cgroup", where, shrinks=12, rank=7),
        Field("uptime", SECONDS, "uptime", at("seen.reading.age_s"), show=short_duration, rank=8),
        Field("user", TEXT, "user", at("seen.user"), shrinks=6, rank=12),
        Field("jdk", TEXT, "JDK", _jdk_cell, shrinks=8, rank=13),
    )
}
LIVE: Sequence[Field[Row]] = [*_LINE.values()]
IDENTITY_LINE: Sequence[Field[Row]] = [
    _LINE[name] for name in ("pid", "user", "main", "jdk", "where", "uptime", "threads", "attach")
]
USE_LINE: Sequence[Field[Row]] = [
    _LINE[name] for name in ("pid", "cpu", "throttled", "heap", "rss", "gc", "collections", "stopped", "alloc", "promo")
]
RATE_NAMES = frozenset({"allocation_bytes_per_s", "promotion_bytes_per_s", "alloc", "promo"})
# Of JVMs in a sample: what changes.
SAMPLE: Sequence[Field[Sample]] = (
    Field("pid", ID, value=lambda sample: sample.key[0]),
    Field("start_ticks", ID, value=lambda sample: sample.key[1]),
    Field("cpu_percent", NUMBER, value=rounded("shares.cpu_percent", 3)),
    Field("heap_used_bytes", SIZE, value=at("reading.heap.used_bytes")),
    Field("rss_bytes", SIZE, value=at("reading.rss_bytes")),
    Field("throttled_percent", NUMBER, value=rounded("shares.throttled_percent", 3)),
    Field("gc_percent", NUMBER, value=rounded("shares.gc_percent", 3)),
    Field("stopped_percent", NUMBER, value=rounded("shares.stopped_percent", 3)),
    *_RATES,
    Field("threads", COUNT, value=at("reading.threads")),
)
LOOK: Sequence[Field[Any]] = (
    Field("at_s", NUMBER, value=lambda look: round(look[0], 3), help="since the first look"),
    Field("jvms", records(SAMPLE), value=lambda look: look[1]),
)
