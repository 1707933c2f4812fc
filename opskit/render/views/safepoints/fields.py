"""The values that are shown of safepoints, each named once."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from opskit.quantities import duration, percent, plain, twelve_digits, whole
from opskit.render.fields import COUNT, FLAG, NUMBER, TEXT, Field, Kind, map_of, record, records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opskit.analysis.safepoints.live import Interval
    from opskit.analysis.safepoints.minutes import Minute
    from opskit.analysis.safepoints.stops import Stop
    from opskit.analysis.safepoints.sums import Operation

PERCENTILES = ("p50", "p90", "p99", "p99.9")


def _known(show: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "-" if value is None else show(value)


def _number(show: Callable[[Any], str], dump: Callable[[Any], Any] = twelve_digits) -> Kind:
    return Kind({"type": "number"}, _known(show), right=True, dump=dump)


def _fixed(value: float | None) -> str | None:
    """Milliseconds in full, also of large numbers."""
    return None if value is None else f"{value:.3f}"


SECONDS, SHARE = _number(duration), _number(percent)
_RATE = _number(lambda value: f"{value:,.1f}")
_AT = _number(lambda value: f"{value:.1f}", dump=lambda value: round(value, 3))
_COUNTED = Kind({"type": "integer"}, _known(whole), right=True)

STOP: Sequence[Field[Stop]] = (
    Field("time", TEXT, "time", lambda stop: stop.stamp.text or None, help="the date as the log has it"),
    Field("uptime_s", NUMBER, value=lambda stop: stop.stamp.uptime_s),
    Field("uptime", TEXT, "uptime s", lambda stop: _fixed(stop.stamp.uptime_s), right=True, json=False),
    Field("stopped_s", SECONDS, "stopped", help="the whole stop, TTSP included"),
    Field("ttsp_s", SECONDS, "ttsp", help="time to safepoint"),
    Field("operation", TEXT, "operation"),
    Field(
        "late_threads",
        Kind({"type": "array", "items": TEXT.schema}, ", ".join, dump=list),
        "late threads",
        help="those that a SafepointTimeout named",
    ),
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
SURROUNDINGS: Sequence[Field[Interval]] = (
    Field("throttled_s", SECONDS, "throttled", help="by the CPU quota, summed over the CPUs"),
    Field("throttled_periods", COUNT),
    Field("cpu_pressure_share", SHARE, "cpu psi", help="0 to 1: some task waited for a CPU"),
    Field("memory_pressure_share", SHARE, "mem psi", help="0 to 1: some task waited for memory"),
    Field("io_pressure_share", SHARE, "io psi", help="0 to 1: some task waited for a disk"),
    Field("runnable", Kind({"type": "number"}), help="runnable threads of the machine"),
    Field("major_faults", COUNT),
    Field("waiting", FLAG, help="whether a safepoint was requested and not reached at the end"),
    Field("late_thread", help="the thread that it waits for"),
)
INTERVAL: Sequence[Field[Interval]] = (
    Field("at_s", _AT, "at s", help="the end of the interval, since the first sample"),
    Field("elapsed_s", SECONDS),
    Field("safepoints", _COUNTED, "safepoints"),
    Field("safepoints_per_s", _RATE, "per s"),
    Field("stopped_s", SECONDS),
    Field("stopped_share", SHARE, "stopped"),
    Field("stopped_avg_s", SECONDS, "avg stop"),
    Field("ttsp_s", SECONDS),
    Field("ttsp_avg_s", SECONDS, "avg ttsp"),
    Field("ttsp_share", SHARE, "ttsp share"),
    *SURROUNDINGS,
)


def _keys(names: Iterable[str], kind: Kind) -> Kind:
    """An object with these keys."""
    return record([Field(name, kind, value=lambda row, name=name: row[name]) for name in names])  # type: ignore[misc]


_SPREAD = _keys((*PERCENTILES, "max"), SECONDS)
_TOTALS = record([Field("safepoints", COUNT), Field("stopped_s", SECONDS), Field("ttsp_s", SECONDS)])


def _optional(name: str, kind: Kind = TEXT, help: str = "") -> Field[Any]:  # noqa: A002
    """A key that only logs or only live JVMs have."""
    return Field(name, kind, value=lambda values: values.get(name), help=help)


DOCUMENT: Sequence[Field[Any]] = (
    _optional("safepoints", COUNT),
    _optional("stopped_s", SECONDS, "the whole of the stops, TTSP included"),
    _optional("stopped_avg_s", SECONDS),
    _optional("ttsp_s", SECONDS, "time to safepoint"),
    _optional("ttsp_avg_s", SECONDS),
    _optional("elapsed_s", SECONDS, "the time that is covered, stops included"),
    _optional("stopped_share", SHARE, "0 to 1, of elapsed_s"),
    _optional("ttsp_share", SHARE, "0 to 1, of stopped_s"),
    _optional("percentiles", _keys(("stopped_s", "ttsp_s"), _SPREAD), "logs: exact, by nearest rank"),
    _optional("operations", records(OPERATION), "logs"),
    _optional("worst", records(STOP), "logs: the longest stops"),
    _optional("minutes", records(MINUTE), "logs, with --by minute"),
    _optional("slower", record([Field("safepoints", COUNT), Field("stopped_s", SECONDS)]), "logs, with --slower-than"),
    _optional("late_threads", map_of(COUNT), "logs: how often a SafepointTimeout named each thread"),
    _optional("lines", COUNT, "logs"),
    _optional("lines_unreadable", COUNT, "logs: lines that look like a safepoint's and are none"),
    _optional("safepoints_per_s", _RATE, "live"),
    *(_optional(field.name, field.kind, f"live: {field.help}".rstrip(": ")) for field in SURROUNDINGS),
    _optional("samples", records(INTERVAL), "live: the intervals"),
    _optional(
        "counters", record([_optional("first", _TOTALS), _optional("last", _TOTALS)]), "live: the JVM's own totals"
    ),
)


def columns(fields: Sequence[Field[Any]], *names: str, raw: bool = False) -> list[Field[Any]]:
    """Some of the fields as columns, in this order. `raw`: for programs, with the unit of times in their titles."""
    found = {field.name: field for field in fields}
    return [_raw(found[name]) if raw and found[name].kind is SECONDS else found[name] for name in names]


def _raw(field: Field[Any]) -> Field[Any]:
    renamed = copy(field)
    renamed.title += " s"
    return renamed


def averages_line(stopped_avg_s: float | None, ttsp_avg_s: float | None) -> str:
    """`stopped.avg=0.015759, ttsp.avg=6.98995e-05`: seconds, as awk prints them; "-" for unknown."""
    return f"stopped.avg={plain(stopped_avg_s)}, ttsp.avg={plain(ttsp_avg_s)}"


def totals_line(
    safepoints: int,
    stopped_s: float,
    elapsed_s: float | None,
    stopped_share: float | None,
    ttsp_share: float | None,
    slower: tuple[int, float] | None = None,
) -> str:
    """`key=value` words: the counts and shares that are no column of a table."""
    words: dict[str, object] = {
        "safepoints": safepoints, "stopped": stopped_s, "elapsed": elapsed_s, "stopped.share": stopped_share,
        "ttsp.share": ttsp_share,
    }  # fmt: skip
    if slower is not None:
        words |= {"slower.safepoints": slower[0], "slower.stopped": slower[1]}
    return " ".join(f"{key}={plain(value)}" for key, value in words.items())
