"""The values that are shown of safepoints, each named once."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from opskit.quantities import duration, percent, plain, twelve_digits, whole
from opskit.render.cells import or_dash
from opskit.render.fields import COUNT, FLAG, NUMBER, TEXT, Field, Kind, map_of, record, records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opskit.analysis.safepoints.live import Interval
    from opskit.analysis.safepoints.minutes import Minute
    from opskit.analysis.safepoints.stops import Stop, Totals
    from opskit.analysis.safepoints.sums import Operation

PERCENTILES = ("p50", "p90", "p99", "p99.9")


def _number(show: Callable[[Any], str], dump: Callable[[Any], Any] = twelve_digits) -> Kind:
    return Kind({"type": "number"}, or_dash(show), right=True, dump=dump)


def _fixed(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"  # milliseconds in full, also of large numbers


SECONDS, SHARE = _number(duration), _number(percent)
_RATE = _number(lambda value: f"{value:,.1f}")
_AT = _number(lambda value: f"{value:.1f}", dump=lambda value: round(value, 3))
_NAMES = Kind({"type": "array", "items": TEXT.schema}, ", ".join, dump=list)
_COUNTED = Kind({"type": "integer"}, or_dash(whole), right=True)

STOP: Sequence[Field[Stop]] = (
    Field("time", TEXT, "time", lambda stop: stop.stamp.text or None, help="the date as the log has it"),
    Field("uptime_s", NUMBER, value=lambda stop: stop.stamp.uptime_s),
    Field("uptime", TEXT, "uptime s", lambda stop: _fixed(stop.stamp.uptime_s), right=True, json=False),
    Field("stopped_s", SECONDS, "stopped", help="the whole stop, TTSP included"),
    Field("ttsp_s", SECONDS, "ttsp", help="time to safepoint"),
    Field("operation", TEXT, "operation"),
    Field("late_threads", _NAMES, "late threads", help="those that a SafepointTimeout named"),
)
OPERATION: Sequence[Field[Operation]] = (
    Field("operation", TEXT, "operation", lambda row: row.name, show=lambda name: name or "(not named)"),
    Field("safepoints", COUNT, "safepoints"),
    Field("stopped_s", SECONDS, "stopped"),
    Field("stopped_avg_s", SECONDS, "avg"),
    Field("stopped_p99_s", SECONDS, "p99"),
    Field("stopped_max_s", SECONDS, "max"),
    Field("ttsp_s", SECONDS, "ttsp"),
    Field("share", SHARE, "share", help="0 to 1, of all stopped time"),
)
MINUTE: Sequence[Field[Minute]] = (
    Field("minute", TEXT, "minute", help="a date, or an uptime in seconds"),
    Field("safepoints", COUNT, "safepoints", help="those that ended in it"),
    Field("stopped_s", SECONDS, "stopped"),
    Field("share", SHARE, "share", help="0 to 1, of the minute"),
    Field("stopped_max_s", SECONDS, "max"),
    Field("ttsp_s", SECONDS, "ttsp"),
    Field("operation", TEXT, "longest operation", help="of the longest stop"),
)


def _of_totals(name: str, kind: Kind, title: str = "", help: str = "") -> Field[Any]:  # noqa: A002
    return Field(name, kind, title, lambda row: getattr(row.totals, name), help=help)


SURROUNDINGS: Sequence[Field[Interval]] = (
    Field("throttled_s", SECONDS, "throttled", help="live: by the CPU quota, summed over the CPUs"),
    Field("throttled_periods", COUNT, help="live"),
    Field("cpu_pressure_share", SHARE, "cpu psi", help="live, 0 to 1: some task waited for a CPU"),
    Field("memory_pressure_share", SHARE, "mem psi", help="live, 0 to 1: some task waited for memory"),
    Field("io_pressure_share", SHARE, "io psi", help="live, 0 to 1: some task waited for a disk"),
    Field("runnable", NUMBER, help="live: runnable threads of the machine"),
    Field("major_faults", COUNT, help="live"),
    Field("waiting", FLAG, help="live: whether a safepoint was requested and not reached at the end"),
    Field("late_thread", help="live: the thread that it waits for"),
)
_PER_S: Field[Interval] = Field("safepoints_per_s", _RATE, value=lambda row: row.totals.safepoints / row.elapsed_s)
INTERVAL: Sequence[Field[Interval]] = (
    Field("at_s", _AT, "at s", help="the end of the interval, since the first sample"),
    Field("elapsed_s", SECONDS),
    _of_totals("safepoints", _COUNTED, "stops"),
    _PER_S,
    _of_totals("stopped_s", SECONDS),
    _of_totals("stopped_share", SHARE, "stopped"),
    _of_totals("stopped_avg_s", SECONDS, "avg stop"),
    _of_totals("ttsp_s", SECONDS),
    _of_totals("ttsp_avg_s", SECONDS, "avg ttsp"),
    _of_totals("ttsp_share", SHARE),
    *SURROUNDINGS,
)


def _keys(names: Iterable[str], kind: Kind) -> Kind:
    """An object with these keys."""
    return record([Field(name, kind, value=lambda row, name=name: row[name]) for name in names])  # type: ignore[misc]


def _only(name: str, kind: Kind, help: str) -> Field[Any]:  # noqa: A002
    """A key that only logs have, or only live JVMs."""
    return Field(name, kind, value=lambda row: getattr(row, name, None), help=help)


_SPREAD = _keys((*PERCENTILES, "max"), SECONDS)
_COUNTERS = record([Field("safepoints", COUNT), Field("stopped_s", SECONDS), Field("ttsp_s", SECONDS)])
DOCUMENT: Sequence[Field[Any]] = (
    _of_totals("safepoints", COUNT),
    _of_totals("stopped_s", SECONDS, help="the whole of the stops, TTSP included"),
    _of_totals("stopped_avg_s", SECONDS),
    _of_totals("ttsp_s", SECONDS, help="time to safepoint"),
    _of_totals("ttsp_avg_s", SECONDS),
    _of_totals("elapsed_s", SECONDS, help="the time that is covered, stops included"),
    _of_totals("stopped_share", SHARE, help="0 to 1, of elapsed_s"),
    _of_totals("ttsp_share", SHARE, help="0 to 1, of stopped_s"),
    _only("percentiles", _keys(("stopped_s", "ttsp_s"), _SPREAD), "logs: exact, by nearest rank"),
    _only("operations", records(OPERATION), "logs"),
    _only("worst", records(STOP), "logs: the longest stops"),
    _only("minutes", records(MINUTE), "logs, with --by minute"),
    _only("slower", record([Field("safepoints", COUNT), Field("stopped_s", SECONDS)]), "logs, with --slower-than"),
    _only("late_threads", map_of(COUNT), "logs: how often a SafepointTimeout named each thread"),
    _only("lines", COUNT, "logs"),
    _only("lines_unreadable", COUNT, "logs: lines that look like a safepoint's but are not"),
    _only("safepoints_per_s", _RATE, "live"),
    *(_only(field.name, field.kind, field.help) for field in SURROUNDINGS),
    _only("samples", records(INTERVAL), "live: the intervals"),
    _only("counters", _keys(("first", "last"), _COUNTERS), "live: the JVM's own totals"),
)


def columns(fields: Sequence[Field[Any]], *names: str, raw: bool = False) -> list[Field[Any]]:
    """Some of the fields as columns, in this order. `raw`: for programs, with the unit of times in their titles."""
    found = {field.name: copy(field) for field in fields}
    for field in found.values():
        field.title += " s" if raw and field.kind is SECONDS else ""
    return [found[name] for name in names]


def averages_line(totals: Totals) -> str:
    """`stopped.avg=0.015759, ttsp.avg=6.98995e-05`: seconds, as awk prints them; "-" for unknown."""
    return f"stopped.avg={plain(totals.stopped_avg_s)}, ttsp.avg={plain(totals.ttsp_avg_s)}"


def totals_line(totals: Totals, slower: tuple[int, float] | None = None) -> str:
    """`key=value` words: the counts and shares that no table has."""
    words: dict[str, object] = {
        "safepoints": totals.safepoints, "stopped": totals.stopped_s, "elapsed": totals.elapsed_s,
        "stopped.share": totals.stopped_share, "ttsp.share": totals.ttsp_share,
    }  # fmt: skip
    if slower is not None:
        words.update(zip(("slower.safepoints", "slower.stopped"), slower))
    return " ".join(f"{key}={plain(value)}" for key, value in words.items())
