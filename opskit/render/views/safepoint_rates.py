"""How a live JVM's safepoints are shown: a row an interval, and all of them in a last one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.analysis.safepoint_advice import duration, percent
from opskit.escape import printable
from opskit.quantities import plain, whole
from opskit.render.report import Block, Column, Sheet
from opskit.render.views.safepoints import averages_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.analysis.safepoint_rates import Interval
    from opskit.jvm.perfdata.safepoint_counters import Reading

_TEXT: tuple[tuple[str, int, Callable[[Interval, float], str]], ...] = (
    ("AT_S", 8, lambda row, begun: f"{row.at_s - begun:.1f}"),
    ("SAFEPOINTS", 11, lambda row, _: str(row.safepoints)),
    ("PER_S", 8, lambda row, _: plain(row.per_s)),
    ("STOPPED_S", 12, lambda row, _: plain(row.stopped_s)),
    ("SHARE", 12, lambda row, _: plain(row.stopped_share)),
    ("STOPPED_AVG_S", 14, lambda row, _: plain(row.stopped_avg_s)),
    ("TTSP_AVG_S", 12, lambda row, _: plain(row.ttsp_avg_s)),
    ("TTSP_SHARE", 12, lambda row, _: plain(row.ttsp_share)),
    ("THROTTLED_S", 12, lambda row, _: plain(row.throttled_s)),
    ("CPU_PSI", 11, lambda row, _: plain(row.share(row.cpu_stalled_s))),
    ("MEMORY_PSI", 11, lambda row, _: plain(row.share(row.memory_stalled_s))),
    ("IO_PSI", 11, lambda row, _: plain(row.share(row.io_stalled_s))),
)


def header_line() -> str:
    """The titles of `-f text`."""
    return " ".join(title.rjust(width) for title, width, _ in _TEXT)


def interval_line(interval: Interval, begun_s: float) -> str:
    """One interval; "-" where nothing tells."""
    line = " ".join(value(interval, begun_s).rjust(width) for _, width, value in _TEXT)
    if not interval.waiting:
        return line
    who = "" if interval.late_thread is None else f" for {printable(interval.late_thread)}"
    return f"{line}  # waiting{who} to reach a safepoint"


def closing_lines(total: Interval, verdict: Sequence[str]) -> Iterator[str]:
    """All intervals together, as a log's: the averages, the totals, the verdict."""
    yield averages_line(total.stopped_avg_s, total.ttsp_avg_s)
    yield (
        f"safepoints={total.safepoints} stopped={total.stopped_s:.6g} elapsed={total.elapsed_s:.6g} "
        f"stopped.share={total.stopped_share:.6g} "
        f"ttsp.share={'-' if total.ttsp_share is None else format(total.ttsp_share, '.6g')}"
    )
    for line in verdict:
        yield f"verdict: {line}"


def blocks(intervals: Sequence[Interval], total: Interval, begun_s: float) -> list[Block[Any]]:
    """The table; its last row is the sum, and the latest intervals stand next to it where the screen is small."""
    rows = [("all", total), *((f"{interval.at_s - begun_s:.1f}", interval) for interval in reversed(intervals))]
    columns: list[Column[Any]] = [
        Column("at s", lambda row: row[0], right=True),
        Column("safepoints", lambda row: row[1].safepoints, whole, right=True),
        Column("per s", lambda row: row[1].per_s, lambda value: f"{value:,.1f}", right=True),
        Column("stopped", lambda row: row[1].stopped_share, percent, right=True),
        Column("avg stop", lambda row: row[1].stopped_avg_s, _or_dash(duration), right=True),
        Column("avg ttsp", lambda row: row[1].ttsp_avg_s, _or_dash(duration), right=True),
        Column("ttsp share", lambda row: row[1].ttsp_share, _or_dash(percent), right=True),
        Column("throttled", lambda row: row[1].throttled_s, _or_dash(duration), right=True),
        Column("cpu psi", lambda row: row[1].share(row[1].cpu_stalled_s), _or_dash(percent), right=True),
        Column("mem psi", lambda row: row[1].share(row[1].memory_stalled_s), _or_dash(percent), right=True),
        Column("io psi", lambda row: row[1].share(row[1].io_stalled_s), _or_dash(percent), right=True),
    ]
    return [Block(columns, rows, len(rows))]


def _or_dash(show: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "-" if value is None else show(value)


def to_object(total: Interval) -> dict[str, Any]:
    """All intervals together for JSON: the keys of a log's summary; what counters cannot tell is null."""
    return {
        "safepoints": total.safepoints,
        "stopped_s": total.stopped_s,
        "stopped_avg_s": total.stopped_avg_s,
        "ttsp_s": total.ttsp_s,
        "ttsp_avg_s": total.ttsp_avg_s,
        "elapsed_s": total.elapsed_s,
        "stopped_share": total.stopped_share,
        "ttsp_share": total.ttsp_share,
        "safepoints_per_s": total.per_s,
        **_surroundings(total),
        "percentiles": None,
        "operations": None,
        "worst": None,
    }


def _surroundings(interval: Interval) -> dict[str, Any]:
    return {
        "throttled_s": interval.throttled_s,
        "throttled_periods": interval.throttled_periods,
        "cpu_pressure_share": interval.share(interval.cpu_stalled_s),
        "memory_pressure_share": interval.share(interval.memory_stalled_s),
        "io_pressure_share": interval.share(interval.io_stalled_s),
        "runnable": interval.runnable,
        "major_faults": interval.major_faults,
        "waiting": interval.waiting,
        "late_thread": interval.late_thread,
    }


def interval_object(interval: Interval, begun_s: float) -> dict[str, Any]:
    """One interval for JSON."""
    return {
        "at_s": round(interval.at_s - begun_s, 3),
        "elapsed_s": interval.elapsed_s,
        "safepoints": interval.safepoints,
        "safepoints_per_s": interval.per_s,
        "stopped_s": interval.stopped_s,
        "stopped_share": interval.stopped_share,
        "stopped_avg_s": interval.stopped_avg_s,
        "ttsp_s": interval.ttsp_s,
        "ttsp_avg_s": interval.ttsp_avg_s,
        "ttsp_share": interval.ttsp_share,
        **_surroundings(interval),
    }


def counters_object(readings: Sequence[Reading]) -> dict[str, Any]:
    """The JVM's own totals at the first and the last look: they find the same safepoints in a log."""
    return {
        name: {"safepoints": reading.safepoints, "stopped_s": reading.stopped_s, "ttsp_s": reading.ttsp_s}
        for name, reading in (("first", readings[0]), ("last", readings[-1]))
    }


def sheet(intervals: Sequence[Interval], begun_s: float) -> Sheet:
    """What `-f csv` writes: a row an interval."""
    rows = [interval_object(interval, begun_s) for interval in intervals]
    return Sheet(list(rows[0]), [list(row.values()) for row in rows])
