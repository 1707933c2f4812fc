"""How costs are shown: of a system call and of process switches, beside those of other servers."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.quantities import duration, number_ranges, short_size, whole
from opskit.render.cells import or_dash
from opskit.render.fields import COUNT, FLAG, NUMBER, SECONDS, SIZE, TEXT, Field, record, records, sheet
from opskit.render.report import Block, Metrics, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.analysis.cswitch.bench import Result, Row, Server
    from opskit.collect.cswitch.bench import Pairing
    from opskit.render.report import About


_or_dash = or_dash(duration)


def _seconds(name: str) -> Callable[[Any], float | None]:
    """Nanoseconds as seconds, to a tenth of one."""
    read = attrgetter(name)

    def value(row: Any) -> float | None:
        ns = read(row)
        return None if ns is None else round(ns / 1e9, 10)

    return value


def _nanoseconds(name: str, title: str) -> Field[Row]:
    """A column for awk."""
    read = attrgetter(name)

    def value(row: Row) -> float | None:
        ns = read(row)
        return None if ns is None else round(ns, 1)

    return Field(name, NUMBER, title, value, json=False)


def _per_trip(row: Row) -> float | None:
    return None if row.per_trip is None else round(row.per_trip, 3)


def _cpus(row: Any) -> str | None:
    return number_ranges(row.cpus) or None


_PLACES = "one-cpu, smt-sibling, same-socket, other-socket, two-cpus (their sockets are unknown), not-pinned"
_WHAT: Field[Row] = Field("what", TEXT, "what", help=f"system-call; of a switch where the two processes run: {_PLACES}")
_CPUS: Field[Row] = Field("cpus", TEXT, "cpus", _cpus, help="as 0-3,8; null: not pinned", right=True)
_SET: Field[Row] = Field(
    "working_set_bytes", SIZE, "memory", help="that each process overwrites before each switch; 0: none"
)
_TRIPS: Field[Row] = Field("round_trips", COUNT, "trips", help="bytes that went there and back")
_SWITCHES: Field[Row] = Field("switches", COUNT, "switches", help="counted by the kernel in both processes")
_CPU: Field[Row] = Field(
    "cpu_s", NUMBER, "cpu s", lambda row: round(row.cpu_s, 4), help="CPU time that measuring took, of both processes"
)
FIGURE: Sequence[Field[Row]] = (
    _WHAT, _CPUS, _SET,
    Field("least_s", NUMBER, value=_seconds("least_ns"),
          help="of one call, or one counted switch: the shortest of many batches; null: lost in the time of the calls alone"),
    Field("median_s", NUMBER, value=_seconds("median_ns"), help="the median of the batches, with what the machine's load adds"),
    _TRIPS, _SWITCHES,
    Field("switches_per_trip", NUMBER, value=_per_trip),
    Field("cache", TEXT, help="the nearest one that holds the memory of both processes: L1, L2, L3"),
    _CPU,
)  # fmt: skip
TEXT_COLUMNS: Sequence[Field[Row]] = (
    _WHAT, _CPUS, _SET, _nanoseconds("least_ns", "least ns"), _nanoseconds("median_ns", "median ns"), _TRIPS, _SWITCHES, _CPU,
)  # fmt: skip
COLUMNS: Sequence[Field[Row]] = (
    Field("where", TEXT, "cost of a"),
    Field("cpus", TEXT, "CPU", lambda row: _cpus(row) or "any", right=True),
    Field("least", SECONDS, "least", _seconds("least_ns"), show=_or_dash),
    Field("median", SECONDS, "median", _seconds("median_ns"), show=_or_dash),
    Field("memory", SIZE, "memory", attrgetter("working_set_bytes"), show=lambda size: short_size(size) if size else "-", rank=1),
    Field("cache", TEXT, "fits in", show=or_dash(str), rank=3),
    Field("switches", COUNT, "switches", show=or_dash(whole), rank=2),
    Field("cpu", SECONDS, "CPU time", attrgetter("cpu_s"), show=duration, rank=4),
)  # fmt: skip
_METRICS: Sequence[Field[Row]] = (
    *(field for field in FIGURE if field.name not in ("cache", "working_set_bytes")),
    Field("memory", TEXT, value=lambda row: str(row.working_set_bytes)),
)
_WITH_MEMORY = ("memory", "cache")
SERVER: Sequence[Field[Server]] = (
    Field("cpu", TEXT, "CPU", shrinks=20),
    Field("call_s", SECONDS, "call", _seconds("call_ns"), show=_or_dash),
    Field("one_cpu_s", SECONDS, "switch", _seconds("pinned_ns"), show=_or_dash, help="of processes"),
    Field("threads_s", SECONDS, "of threads", _seconds("thread_ns"), show=_or_dash, help="on one CPU; null: not measured"),
    Field("not_pinned_s", SECONDS, "not pinned", _seconds("not_pinned_ns"), show=_or_dash, help="of processes"),
)  # fmt: skip
_FAILED: Sequence[Field[tuple[Pairing | None, int, str]]] = (
    Field("what", TEXT, value=lambda it: it[0].kind if it[0] else "system-call"),
    Field("cpus", TEXT, value=lambda it: _cpus(it[0]) if it[0] else None),
    Field("working_set_bytes", SIZE, value=lambda it: it[1]),
    Field("why", TEXT, value=lambda it: it[2]),
)
_BENCH: Sequence[Field[Result]] = (
    Field("cpu", TEXT, value=attrgetter("facts.cpu.model"), help="the model, as the kernel names it"),
    Field("is_virtual", FLAG, value=attrgetter("facts.is_virtual"), help="a hypervisor is known"),
    Field("interrupted", FLAG, value=attrgetter("facts.interrupted"), help="ended early: the figures so far"),
    Field("figures", records(FIGURE), value=lambda it: [*it.rows]),
    Field("servers", records(SERVER), value=lambda it: [*it.servers], help="this machine, then those of a blog post of 2010 to 2013"),
    Field("failed", records(_FAILED), value=lambda it: [*it.facts.failed], help="what could not be measured"),
)  # fmt: skip
FIELD: Field[Any] = Field("bench", record(_BENCH), help="of --bench")


def report(about: About, result: Result, *, text: bool) -> Report:
    """The figures, then those of other servers."""
    return Report(
        about,
        [*_blocks(result, text=text)],
        verdict=result.verdict,
        footer=result.notes,
        metrics=lambda: [Metrics("opskit_cswitch_bench", _METRICS, result.rows)],
        sheet=lambda: sheet(FIGURE, result.rows),
        exit_code=130 if result.facts.interrupted else None,
    )


def _blocks(result: Result, *, text: bool) -> Iterator[Block[Any]]:
    rows = result.rows
    if text:
        yield Block(TEXT_COLUMNS, rows, len(rows))
        return
    has_memory = any(row.working_set_bytes for row in rows)
    columns = [field for field in COLUMNS if has_memory or field.name not in _WITH_MEMORY]
    yield Block(columns, rows, len(rows), one_line=True)
    servers = result.servers
    yield Block(
        SERVER,
        servers,
        len(servers),
        "system calls, and switches on one CPU, of servers of 2010 to 2013",
        one_line=True,
        details=True,
    )
