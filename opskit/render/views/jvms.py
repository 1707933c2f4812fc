"""How the JVMs are shown: two tables for people (who they are, what they use), one line each for awk, keys for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.errors import NotPermitted
from opskit.jvm.launch import without_secrets
from opskit.quantities import size, whole
from opskit.render.report import Block, Column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.analysis.jvms import Row, Sample

_SAID_ELSEWHERE = frozenset({"other-user", "openj9", "native-image"})
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def duration(seconds: float | None) -> str:
    """45s, 12m3s, 5h12m, 12d5h: short, since it stands in a wide table."""
    if seconds is None:
        return "unknown"
    whole_s = int(seconds)
    for large, small, large_name, small_name in ((86400, 3600, "d", "h"), (3600, 60, "h", "m"), (60, 1, "m", "s")):
        if whole_s >= large:
            return f"{whole_s // large}{large_name}{whole_s % large // small}{small_name}"
    return f"{whole_s}s"


def percent(share: float | None) -> str:
    """A share with one digit: 3.2 %."""
    return "unknown" if share is None else f"{share:.1f} %"


def _pid(row: Row) -> str:
    return str(row.pid) if row.ns_pid == row.pid else f"{row.pid} ({row.ns_pid} inside)"


def sizes(counts: Sequence[int]) -> str:
    """Bytes that belong together, in the unit of the largest: 0.4 / 32 / 64 MiB."""
    power = min(max(max(counts).bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    amounts = [count / 1024**power for count in counts]
    return " / ".join(f"{amount:.{0 if amount >= 10 or not power else 1}f}" for amount in amounts) + f" {_UNITS[power]}"


def _heap(row: Row) -> str:
    return "unknown" if row.heap is None else sizes(row.heap)


def _memory(row: Row) -> str:
    if row.rss_bytes is None:
        return "unknown"
    if row.memory is None:
        return f"{size(row.rss_bytes)} / unknown"
    if row.memory.limit_bytes is None:
        return f"{size(row.rss_bytes)} / none"
    share = "" if row.memory_percent is None else f", {row.memory_percent:.0f} %"
    return sizes((row.rss_bytes, row.memory.limit_bytes)) + share


def _cpu(row: Row) -> str:
    quota = "unknown" if row.cpu is None else "none" if row.cpu.cpus is None else f"{row.cpu.cpus * 100:g} %"
    return f"{percent(row.cpu_percent)} / {quota}"


def _jdk(row: Row) -> str:
    words = (row.jdk or "unknown",) if row.kind == "HotSpot" else (row.kind, row.jdk)
    return " ".join(word for word in (*words, row.collector) if word)


def _throttled(row: Row) -> str:
    if row.cpu is not None and row.cpu.cpus is None:
        return "no quota"
    return percent(row.throttled_percent)


def _attach(row: Row) -> str:
    if row.attach is None:
        return "unknown"
    return "yes" if row.attach.why is None else f"no: {row.attach.code.replace('-', ' ')}"


def _attach_word(row: Row) -> str | None:
    if row.attach is None:
        return None
    return "yes" if row.attach.why is None else f"no:{row.attach.code}"


def _where(row: Row) -> str | None:
    return row.place.label if row.place else None


IDENTITY_COLUMNS: list[Column[Row]] = [
    Column("pid", _pid, right=True),
    Column("user", lambda row: row.user),
    Column("main class or jar", lambda row: row.main),
    Column("JDK", _jdk),
    Column("container, pod or unit", lambda row: _where(row) or ""),
    Column("up", lambda row: row.age_s, duration, right=True),
    Column("threads", lambda row: row.threads, whole, right=True),
    Column("attach", _attach),
]

USE_COLUMNS: list[Column[Row]] = [
    Column("pid", lambda row: row.pid, right=True),
    Column("CPU / quota", _cpu, right=True),
    Column("throttled", _throttled, right=True),
    Column("heap used / committed / max", _heap, right=True),
    Column("resident / limit", _memory, right=True),
    Column("in GC", lambda row: row.gc_percent, percent, right=True),
    Column("GCs", lambda row: row.gc.collections, whole, right=True),
    Column("stopped", lambda row: row.stopped_percent, percent, right=True),
]


def blocks(rows: Sequence[Row], *, vm_args: bool, properties: bool) -> list[Block[Row]]:
    """The tables for people."""
    found = [Block(IDENTITY_COLUMNS, rows, len(rows)), Block(USE_COLUMNS, rows, len(rows))]
    if vm_args:
        found.append(Block(_args_columns(properties), rows, len(rows)))
    return found


def _args_columns(properties: bool) -> list[Column[Row]]:
    return [
        Column("pid", lambda row: row.pid, right=True),
        Column("JVM options", lambda row: _vm_args(row, properties) or "unknown"),
    ]


def _vm_args(row: Row, properties: bool) -> str | None:
    if row.vm_args is None or properties:
        return row.vm_args
    return without_secrets(row.vm_args, row.words)


def _rounded(value: Callable[[Row], float | None], digits: int) -> Callable[[Row], float | None]:
    def rounded(row: Row) -> float | None:
        number = value(row)
        return None if number is None else round(number, digits)

    return rounded


def _limit(row: Row) -> int | str | None:
    if row.memory is None:
        return None
    return "none" if row.memory.limit_bytes is None else row.memory.limit_bytes


def text_block(rows: Sequence[Row], *, vm_args: bool, properties: bool) -> Block[Row]:
    """One line a JVM; only the last column may have spaces in it. Sizes in bytes, times in seconds, shares in percent."""
    columns: list[Column[Row]] = [
        Column("pid", lambda row: row.pid, right=True),
        Column("ns pid", lambda row: row.ns_pid, right=True),
        Column("user", lambda row: row.user),
        Column("jdk", lambda row: row.jdk),
        Column("collector", lambda row: row.collector),
        Column("uptime", lambda row: None if row.age_s is None else int(row.age_s), right=True),
        Column("cpu%", _rounded(lambda row: row.cpu_percent, 1), right=True),
        Column("heap used", lambda row: row.heap and row.heap.used_bytes, right=True),
        Column("heap committed", lambda row: row.heap and row.heap.committed_bytes, right=True),
        Column("heap max", lambda row: row.heap and row.heap.max_bytes, right=True),
        Column("rss", lambda row: row.rss_bytes, right=True),
        Column("memory limit", _limit, right=True),
        Column("throttled%", _rounded(lambda row: row.throttled_percent, 1), right=True),
        Column("gc%", _rounded(lambda row: row.gc_percent, 2), right=True),
        Column("collections", lambda row: row.gc.collections, right=True),
        Column("stopped%", _rounded(lambda row: row.stopped_percent, 2), right=True),
        Column("threads", lambda row: row.threads, right=True),
        Column("attach", _attach_word),
        Column("where", _where),
        Column("main", lambda row: row.main),
    ]
    if vm_args:
        columns.append(Column("vm args", lambda row: _vm_args(row, properties)))
    return Block(columns, rows, len(rows))


def row_object(row: Row, *, properties: bool) -> dict[str, Any]:
    """One JVM for JSON."""
    place, memory, cpu = row.place, row.memory, row.cpu
    return {
        "pid": row.pid,
        "ns_pid": row.ns_pid,
        "start_ticks": row.start_ticks,
        "user": row.user,
        "uid": row.uid,
        "main": row.main,
        "kind": row.kind,
        "jdk_version": row.jdk,
        "jdk_vendor": row.vendor,
        "collector": row.collector,
        "container": place and place.container,
        "container_runtime": place and place.runtime,
        "pod": place and place.pod,
        "unit": place and place.unit,
        "cgroup": place and place.path,
        "uptime_s": _round(row.age_s, 2),
        "cpu_percent": _round(row.cpu_percent, 2),
        "heap_used_bytes": row.heap and row.heap.used_bytes,
        "heap_committed_bytes": row.heap and row.heap.committed_bytes,
        "heap_max_bytes": row.heap and row.heap.max_bytes,
        "rss_bytes": row.rss_bytes,
        "memory_limited": None if memory is None else memory.limit_bytes is not None,
        "memory_limit_bytes": memory and memory.limit_bytes,
        "memory_limit_cgroup": memory.path if memory and memory.limit_bytes is not None else None,
        "memory_cgroup_usage_bytes": memory and memory.usage_bytes,
        "memory_percent": _round(row.memory_percent, 2),
        "cpu_limited": None if cpu is None else cpu.cpus is not None,
        "cpu_limit_cpus": cpu and cpu.cpus,
        "cpu_limit_cgroup": cpu.path if cpu and cpu.cpus is not None else None,
        "throttled_percent": _round(row.throttled_percent, 2),
        "throttled_s": cpu and cpu.throttled_s,
        "gc_percent": _round(row.gc_percent, 3),
        "gc_collections": row.gc.collections,
        "gc_pauses": row.gc.pauses,
        "gc_pause_s": _round(row.gc.pause_s, 6),
        "stopped_percent": _round(row.stopped_percent, 3),
        "safepoints": row.safepoints,
        "stopped_s": _round(row.stopped_s, 6),
        "threads": row.threads,
        "java_threads": row.java_threads,
        "attach": None if row.attach is None else row.attach.why is None,
        "attach_code": row.attach and row.attach.code,
        "attach_why": row.attach and row.attach.why,
        "no_counters": None if row.no_counters is None else str(row.no_counters),
        "vm_args": _vm_args(row, properties),
    }


def _round(number: float | None, digits: int) -> float | None:
    return None if number is None else round(number, digits)


def sample_object(at_s: float, samples: Sequence[Sample]) -> dict[str, Any]:
    """One look of a watch, for JSON: what changes."""
    return {"at_s": round(at_s, 3), "jvms": [sample._asdict() for sample in samples]}


def notes(rows: Sequence[Row], advice: Callable[[], str]) -> list[str]:
    """Why columns are empty and attaching would fail, in sentences; what is only a matter of rights, once for all.

    `advice` says what to do about rights.
    """
    foreign = [row for row in rows if isinstance(row.no_counters, NotPermitted)]
    lines = [str(row.no_counters) for row in rows if row.no_counters is not None and row not in foreign]
    lines += [
        f"{row.pid}: {row.attach.why}"
        for row in rows
        if row.attach is not None and row.attach.why is not None and row.attach.code not in _SAID_ELSEWHERE
    ]
    if foreign:
        plural = "JVM is" if len(foreign) == 1 else "JVMs are"
        lines.append(
            f"{len(foreign)} {plural} another user's: counters and attaching are for that user and root; {advice()}"
        )
    return lines
