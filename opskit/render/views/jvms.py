"""How JVMs are shown: tables of who they are and what they use, a line each for awk, the JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.errors import NotPermitted
from opskit.jvm.launch import vm_words, without_secrets
from opskit.jvm.perfdata.counters import collector
from opskit.quantities import percent, plural, short_duration, size, sizes
from opskit.records import NamedTuple
from opskit.render.fields import COUNT, FLAG, ID, NUMBER, SECONDS, SIZE, TEXT, Field, records
from opskit.render.formats.text import block_lines
from opskit.render.report import Block, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.analysis.jvms import Result, Row, Shares
    from opskit.collect.jvms import Key, Reading
    from opskit.render.report import About

_SAID_ELSEWHERE = frozenset({"other-user", "openj9", "native-image"})


class Shown(NamedTuple):
    """What to show: `vm_args`, with the values of -D and of agents where `properties`; `top` None or 0: every row.

    `terminal`: one line per JVM in each table; `live`: one table, which is redrawn.
    """

    vm_args: bool
    properties: bool
    top: int | None = None
    terminal: bool = False
    live: bool = False


def report(about: About, result: Result, shown: Shown, *, is_text: bool) -> Report:
    """The verdict, the tables, and why values are unknown."""
    rows, facts = result.rows, result.facts
    first = rows[: shown.top or None]
    columns = [LIVE] if shown.live else [IDENTITY_LINE, USE_LINE] if shown.terminal else [IDENTITY, USE]
    blocks = [Block(fields, first, len(rows), one_line=shown.terminal) for fields in columns] if rows else []
    if shown.vm_args and rows:
        blocks.append(Block([USE[0], _vm_args(shown)], first, len(rows)))
    counted = plural(len(rows), "JVM") + (f", {plural(len(result.findings), 'finding')}" if result.findings else "")
    return Report(
        about,
        blocks,
        verdict=[counted if rows else none_found(result)],
        footer=[*facts.coverage, *notes(result), *([none_found(result)] if is_text and not rows else ())],
        text=(lambda: block_lines(Block(text_fields(shown), first, len(rows)))) if is_text else None,
        findings=result.findings,
        document=(document(shown), result),
    )


def none_found(result: Result) -> str:
    """`no JVM of app is running here`."""
    whose = f" of {', '.join(result.facts.users)}" if result.facts.users else ""
    return f"no JVM{whose} is running here" + ("" if result.facts.complete else ", as far as this copy shows")


def notes(result: Result) -> list[str]:
    """Why values are unknown, and why attaching would fail; missing rights once for all JVMs."""
    jvms = [row.seen.jvm for row in result.rows]
    foreign = [jvm for jvm in jvms if isinstance(jvm.no_perf, NotPermitted)]
    lines = [str(jvm.no_perf) for jvm in jvms if jvm.no_perf is not None and jvm not in foreign]
    attaches = [(row.seen.jvm.pid, row.seen.attach) for row in result.rows if row.seen.attach]
    lines += [f"{pid}: {attach.why}" for pid, attach in attaches if attach.why and attach.code not in _SAID_ELSEWHERE]
    if foreign:
        count = plural(len(foreign), "JVM of another user", "JVMs of other users")
        lines.append(f"{count}: only that user and root may read the counters and attach; {result.facts.advice}")
    return lines


def _jdk(row: Row) -> str | None:
    return _perf_text("java.property.java.version")(row) or row.seen.release


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


def _attach(row: Row) -> str | None:
    attach = row.seen.attach
    return attach and ("yes" if attach.why is None else f"no:{attach.code}")


def _attach_cell(row: Row) -> str:
    return (_attach(row) or "unknown").replace("no:", "no: ").replace("-", " ")


def _where(row: Row) -> str:
    return row.seen.place.label if row.seen.place else ""


def _vm_args(shown: Shown) -> Field[Row]:
    def value(row: Row) -> str | None:
        words = row.seen.words
        args = _perf_text("java.rt.vmArgs")(row) or " ".join(vm_words(list(words))) or None
        return args if args is None or shown.properties else without_secrets(args, words)

    return Field("vm_args", TEXT, "VM args", value, show=lambda args: args or "unknown")


def _at(path: str) -> Callable[[Any], Any]:
    """The value at a path of attributes; None where one before the last is None."""
    names = path.split(".")

    def value(row: Any) -> Any:
        for name in names:
            row = None if row is None else getattr(row, name)
        return row

    return value


def _rounded(path: str, digits: int) -> Callable[[Any], float | None]:
    value = _at(path)
    return lambda row: None if value(row) is None else round(value(row), digits)


def _share(name: str) -> Callable[[tuple[Key, Reading, Shares]], float | None]:
    value = _rounded(name, 3)
    return lambda sample: value(sample[2])


def _is_set(path: str, name: str) -> Callable[[Row], bool | None]:
    limit = _at(path)
    return lambda row: None if limit(row) is None else getattr(limit(row), name) is not None


def _path_if(path: str, name: str) -> Callable[[Row], str | None]:
    is_set, cgroup = _is_set(path, name), _at(f"{path}.path")
    return lambda row: cgroup(row) if is_set(row) else None


def _perf_text(name: str) -> Callable[[Row], str | None]:
    return lambda row: row.seen.jvm.perf.text(name) if row.seen.jvm.perf else None


def _counter(name: str) -> Callable[[Row], int | None]:
    """A counter; None where it is negative, as only a damaged file has it."""

    def value(row: Row) -> int | None:
        number = row.seen.jvm.perf.number(name) if row.seen.jvm.perf else None
        return number if number is None or number >= 0 else None

    return value


def _memory_limit(row: Row) -> int | str | None:
    memory = row.seen.memory
    return memory and ("none" if memory.limit_bytes is None else memory.limit_bytes)


def _column(title: str, value: Callable[[Row], object], *, right: bool = False) -> Field[Row]:
    return Field(title, TEXT, title, value, right=right, json=False)


ROW: Sequence[Field[Row]] = (
    Field("pid", ID, "pid", _at("seen.jvm.pid")),
    Field("ns_pid", ID, "ns pid", _at("seen.jvm.ns_pid"), help="in its own PID namespace"),
    Field("start_ticks", ID, value=_at("seen.jvm.start_ticks")),
    Field("user", TEXT, "user", _at("seen.user")),
    Field("uid", ID, value=_at("seen.jvm.uid"), help="effective uid"),
    Field("main", TEXT, "main", _at("seen.jvm.main"), help="main class, module or jar"),
    Field("kind", value=_at("seen.jvm.kind"), help="HotSpot, OpenJ9 or native image"),
    Field("jdk_version", TEXT, "jdk", _jdk),
    Field("jdk_vendor", value=_perf_text("java.property.java.vm.vendor")),
    Field("collector", TEXT, "collector", _collector),
    Field("container", value=_at("seen.place.container"), help="its ID or name"),
    Field("container_runtime", value=_at("seen.place.runtime")),
    Field("pod", value=_at("seen.place.pod")),
    Field("unit", value=_at("seen.place.unit"), help="systemd unit"),
    Field("cgroup", value=_at("seen.place.path")),
    Field("uptime_s", NUMBER, value=_rounded("seen.reading.age_s", 2)),
    Field("cpu_percent", NUMBER, value=_rounded("shares.cpu_percent", 2), help="100 is one CPU"),
    Field("heap_used_bytes", SIZE, "heap used", _at("seen.reading.heap.used_bytes")),
    Field("heap_committed_bytes", SIZE, "heap committed", _at("seen.reading.heap.committed_bytes")),
    Field("heap_max_bytes", SIZE, "heap max", _at("seen.reading.heap.max_bytes")),
    Field("rss_bytes", SIZE, "rss", _at("seen.reading.rss_bytes")),
    Field("memory_limited", FLAG, value=_is_set("seen.memory", "limit_bytes"), help="whether a cgroup has a limit"),
    Field("memory_limit_bytes", SIZE, value=_at("seen.memory.limit_bytes")),
    Field("memory_limit_cgroup", value=_path_if("seen.memory", "limit_bytes")),
    Field("memory_cgroup_usage_bytes", SIZE, value=_at("seen.memory.usage_bytes"), help="with page cache"),
    Field("memory_percent", NUMBER, value=_rounded("memory_percent", 2), help="resident memory of the limit"),
    Field("cpu_limited", FLAG, value=_is_set("seen.reading.cpu", "cpus"), help="whether a cgroup has a quota"),
    Field("cpu_limit_cpus", NUMBER, value=_at("seen.reading.cpu.cpus")),
    Field("cpu_limit_cgroup", value=_path_if("seen.reading.cpu", "cpus")),
    Field("throttled_percent", NUMBER, value=_rounded("shares.throttled_percent", 2), help="of the scheduler periods"),
    Field("throttled_s", NUMBER, value=_at("seen.reading.cpu.throttled_s"), help="since the cgroup's creation"),
    Field("gc_percent", NUMBER, value=_rounded("shares.gc_percent", 3), help="of the time, in GC pauses"),
    Field("gc_collections", COUNT, "collections", _at("seen.reading.gc.collections")),
    Field("gc_pauses", COUNT, value=_at("seen.reading.gc.pauses")),
    Field("gc_pause_s", NUMBER, value=_rounded("seen.reading.gc.pause_s", 6)),
    Field("stopped_percent", NUMBER, value=_rounded("shares.stopped_percent", 3), help="of the time, at safepoints"),
    Field("safepoints", COUNT, value=_counter("sun.rt.safepoints")),
    Field("stopped_s", NUMBER, value=_rounded("seen.reading.stopped_s", 6)),
    Field("threads", COUNT, "threads", _at("seen.reading.threads")),
    Field("java_threads", COUNT, value=_counter("java.threads.live")),
    Field("attach", FLAG, value=lambda row: row.seen.attach and row.seen.attach.why is None),
    Field("attach_code", value=_at("seen.attach.code")),
    Field("attach_why", value=_at("seen.attach.why")),
    Field("no_counters", value=lambda row: row.seen.jvm.no_perf and str(row.seen.jvm.no_perf), help="the reason"),
)
IDENTITY: Sequence[Field[Row]] = (
    _column("pid", _pid_cell, right=True),
    Field("user", TEXT, "user", _at("seen.user")),
    Field("main", TEXT, "main class or jar", _at("seen.jvm.main")),
    _column("JDK", _jdk_cell),
    _column("container, pod or unit", _where),
    Field("uptime", SECONDS, "uptime", _at("seen.reading.age_s"), show=short_duration),
    Field("threads", COUNT, "threads", _at("seen.reading.threads")),
    _column("attach", _attach_cell),
)
USE: Sequence[Field[Row]] = (
    Field("pid", ID, "pid", _at("seen.jvm.pid")),
    _column("CPU / quota", _cpu_cell, right=True),
    _column("throttled", _throttled_cell, right=True),
    _column("heap used / committed / max", _heap_cell, right=True),
    _column("RSS / limit", _memory_cell, right=True),
    Field("gc", NUMBER, "GC pauses", _at("shares.gc_percent"), show=_percent),
    Field("collections", COUNT, "GCs", _at("seen.reading.gc.collections")),
    Field("stopped", NUMBER, "stopped", _at("shares.stopped_percent"), show=_percent),
)
_LINE: dict[str, Field[Row]] = {
    field.name: field
    for field in (
        Field("pid", ID, "pid", _at("seen.jvm.pid")),
        Field("main", TEXT, "main", _at("seen.jvm.main"), shrinks=10),
        Field("cpu", NUMBER, "CPU", _cpu_of_quota, rank=1),
        Field("throttled", NUMBER, "throttled", lambda row: _short(row.shares.throttled_percent), rank=9),
        Field("heap", SIZE, "heap / max", _heap_of_max, show=str, rank=2),
        Field("rss", SIZE, "RSS / limit", _rss_of_limit, show=str, rank=4),
        Field("gc", NUMBER, "GC", lambda row: _short(row.shares.gc_percent), rank=3),
        Field("collections", COUNT, "GCs", _at("seen.reading.gc.collections"), rank=11),
        Field("stopped", NUMBER, "stopped", lambda row: _short(row.shares.stopped_percent), rank=6),
        Field("threads", COUNT, "threads", _at("seen.reading.threads"), rank=10),
        Field("attach", TEXT, "attach", _attach_cell, rank=5),
        Field("where", TEXT, "cgroup", _where, shrinks=12, rank=7),
        Field("uptime", SECONDS, "uptime", _at("seen.reading.age_s"), show=short_duration, rank=8),
        Field("user", TEXT, "user", _at("seen.user"), shrinks=6, rank=12),
        Field("jdk", TEXT, "JDK", _jdk_cell, shrinks=8, rank=13),
    )
}
LIVE: Sequence[Field[Row]] = [*_LINE.values()]
IDENTITY_LINE: Sequence[Field[Row]] = [
    _LINE[name] for name in ("pid", "user", "main", "jdk", "where", "uptime", "threads", "attach")
]
USE_LINE: Sequence[Field[Row]] = [
    _LINE[name] for name in ("pid", "cpu", "throttled", "heap", "rss", "gc", "collections", "stopped")
]
# Of JVMs in a sample: what changes.
SAMPLE: Sequence[Field[tuple[Key, Reading, Shares]]] = (
    Field("pid", ID, value=lambda sample: sample[0][0]),
    Field("start_ticks", ID, value=lambda sample: sample[0][1]),
    Field("cpu_percent", NUMBER, value=_share("cpu_percent")),
    Field("heap_used_bytes", SIZE, value=lambda sample: sample[1].heap and sample[1].heap.used_bytes),
    Field("rss_bytes", SIZE, value=lambda sample: sample[1].rss_bytes),
    Field("throttled_percent", NUMBER, value=_share("throttled_percent")),
    Field("gc_percent", NUMBER, value=_share("gc_percent")),
    Field("stopped_percent", NUMBER, value=_share("stopped_percent")),
    Field("threads", COUNT, value=lambda sample: sample[1].threads),
)
LOOK: Sequence[Field[Any]] = (
    Field("at_s", NUMBER, value=lambda look: round(look[0], 3), help="since the first look"),
    Field("jvms", records(SAMPLE), value=lambda look: look[1]),
)


def text_fields(shown: Shown) -> list[Field[Row]]:
    """One line a JVM; only the last column may have blanks. Sizes in bytes, times in seconds, shares in percent."""
    by_name = {field.name: field for field in (*ROW, _vm_args(shown))}
    columns: Sequence[str | Field[Row]] = (
        "pid", "ns_pid", "user", "jdk_version", "collector",
        _column("uptime", lambda row: row.seen.reading.age_s and int(row.seen.reading.age_s), right=True),
        _column("cpu%", _rounded("shares.cpu_percent", 1), right=True),
        "heap_used_bytes", "heap_committed_bytes", "heap_max_bytes", "rss_bytes",
        _column("memory limit", _memory_limit, right=True),
        _column("throttled%", _rounded("shares.throttled_percent", 1), right=True),
        _column("gc%", _rounded("shares.gc_percent", 2), right=True),
        "gc_collections",
        _column("stopped%", _rounded("shares.stopped_percent", 2), right=True),
        "threads",
        _column("attach", _attach),
        _column("where", _at("seen.place.label")),
        "main", *(["vm_args"] if shown.vm_args else []),
    )  # fmt: skip
    return [by_name[column] if isinstance(column, str) else column for column in columns]


def _samples(result: Result) -> list[tuple[float, list[tuple[Key, Reading, Shares]]]] | None:
    return list(result.samples) if len(result.facts.history) > 1 else None


def document(shown: Shown) -> Sequence[Field[Result]]:
    """The JSON object."""
    return (
        Field("jvms", records((*ROW, _vm_args(shown))), value=lambda result: result.rows),
        Field("jvm_count", COUNT, value=lambda result: len(result.rows)),
        Field("processes_scanned", COUNT, value=lambda result: result.facts.scanned),
        Field("processes_denied", COUNT, value=lambda result: result.facts.denied),
        Field("processes_vanished", COUNT, value=lambda result: result.facts.vanished),
        Field("samples", records(LOOK), value=_samples, help="with -w"),
    )


DOCUMENT = document(Shown(vm_args=True, properties=True))
