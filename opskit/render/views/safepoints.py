"""How safepoints are shown: columns for tables, lines for text, keys for JSON, rows for CSV, dots for the timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opskit.analysis.safepoint_advice import duration, percent
from opskit.analysis.safepoints import PERCENTS
from opskit.escape import printable
from opskit.quantities import twelve_digits, whole
from opskit.render.formats.text import block_lines
from opskit.render.pictures.chart import Dots, DotsChart
from opskit.render.report import Block, Column, Sheet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.analysis.finding import Finding
    from opskit.analysis.safepoints import Minute, Operation, Point, Stop, Summary

STOP_HEADER = ("time", "uptime_s", "stopped_s", "ttsp_s", "operation", "late_threads")
_PERCENT_NAMES = tuple(f"p{percent:g}" for percent in PERCENTS)
_LABELLED = 5
_LABEL_WIDTH = 0.17  # of the picture


@dataclass(frozen=True)
class _Figures:
    """A row of the first table: all stops, or all TTSPs."""

    name: str
    count: int
    total_s: float | None
    avg_s: float | None
    percentiles: Sequence[float | None]
    max_s: float | None


def averages_line(stopped_avg_s: float | None, ttsp_avg_s: float | None) -> str:
    """`stopped.avg=0.015759, ttsp.avg=6.98995e-05`: seconds, as awk prints them; "-" where nothing tells it."""
    stopped, ttsp = ("-" if value is None else f"{value:.6g}" for value in (stopped_avg_s, ttsp_avg_s))
    return f"stopped.avg={stopped}, ttsp.avg={ttsp}"


def seconds(title: str, value: Callable[[Any], object], *, raw: bool) -> Column[Any]:
    """A column of times: with a unit in each cell for people, in seconds and named so for programs."""
    return Column(f"{title} s" if raw else title, value, duration, right=True)


def _share(title: str, value: Callable[[Any], object]) -> Column[Any]:
    return Column(title, value, percent, right=True)


def _count(title: str, value: Callable[[Any], object]) -> Column[Any]:
    return Column(title, value, whole, right=True)


def _figures_block(summary: Summary, *, raw: bool) -> Block[_Figures]:
    rows = [
        _Figures(
            "stopped",
            summary.safepoints,
            summary.stopped_s,
            summary.stopped_avg_s,
            [stop for stop, _ in summary.percentiles],
            summary.stopped_max_s,
        )
    ]
    if summary.ttsp_count:
        ttsps = [ttsp for _, ttsp in summary.percentiles]
        rows.append(_Figures("ttsp", summary.ttsp_count, summary.ttsp_s, summary.ttsp_avg_s, ttsps, summary.ttsp_max_s))
    columns: list[Column[Any]] = [
        Column("what", lambda row: row.name),
        _count("count", lambda row: row.count),
        seconds("total", lambda row: row.total_s, raw=raw),
        seconds("avg", lambda row: row.avg_s, raw=raw),
        *(
            seconds(name, lambda row, at=at: row.percentiles[at], raw=raw)  # type: ignore[misc]
            for at, name in enumerate(_PERCENT_NAMES)
        ),
        seconds("max", lambda row: row.max_s, raw=raw),
    ]
    return Block(columns, rows, len(rows))


def _worst_block(summary: Summary, *, raw: bool) -> Block[Stop]:
    worst = summary.worst
    columns: list[Column[Any]] = []
    if any(stop.stamp.text for stop in worst):
        columns.append(Column("time", lambda stop: stop.stamp.text or None))
    if any(stop.stamp.uptime_s is not None for stop in worst):
        columns.append(
            Column(
                "uptime s",
                lambda stop: _fixed(stop.stamp.uptime_s),
                lambda text: "" if text is None else text,
                right=True,
            )
        )
    columns.append(seconds("stopped", lambda stop: stop.stopped_s, raw=raw))
    if summary.ttsp_count:
        columns.append(seconds("ttsp", lambda stop: stop.ttsp_s, raw=raw))
    if summary.operations:
        columns.append(Column("operation", lambda stop: stop.operation))
    if any(stop.late_threads for stop in worst):
        columns.append(Column("late threads", lambda stop: ", ".join(stop.late_threads)))
    return Block(columns, worst, len(worst), "longest stops")


def _fixed(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"


def _operations_block(summary: Summary, *, raw: bool) -> Block[Operation]:
    columns: list[Column[Any]] = [
        _count("safepoints", lambda row: row.safepoints),
        seconds("stopped", lambda row: row.stopped_s, raw=raw),
        _share("share", lambda row: row.stopped_s / summary.stopped_s if summary.stopped_s else None),
        seconds("avg", lambda row: row.stopped_avg_s, raw=raw),
        seconds("p99", lambda row: row.p99_s, raw=raw),
        seconds("max", lambda row: row.stopped_max_s, raw=raw),
    ]
    if summary.ttsp_count:
        columns.append(seconds("ttsp", lambda row: row.ttsp_s, raw=raw))
    columns.append(Column("operation", lambda row: row.name or "(not named)"))
    return Block(columns, summary.operations, len(summary.operations), "operations")


def _minutes_block(summary: Summary, *, raw: bool) -> Block[Minute]:
    minutes = summary.minutes or []
    columns: list[Column[Any]] = [
        Column("minute", lambda row: row.label),
        _count("safepoints", lambda row: row.safepoints),
        seconds("stopped", lambda row: row.stopped_s, raw=raw),
        _share("share", lambda row: row.share),
        seconds("max", lambda row: row.stopped_max_s, raw=raw),
    ]
    if summary.ttsp_count:
        columns.append(seconds("ttsp", lambda row: row.ttsp_s, raw=raw))
    if summary.operations:
        columns.append(Column("longest operation", lambda row: row.operation))
    return Block(columns, minutes, len(minutes), "minutes")


def blocks(summary: Summary, *, raw: bool = False) -> list[Block[Any]]:
    """The tables. `raw`: for programs, all times in seconds."""
    found: list[Block[Any]] = [_figures_block(summary, raw=raw)]
    if summary.worst:
        found.append(_worst_block(summary, raw=raw))
    if summary.minutes is not None:
        found.append(_minutes_block(summary, raw=raw))
    elif summary.operations:
        found.append(_operations_block(summary, raw=raw))
    return found


def totals_line(summary: Summary) -> str:
    """`key=value` words: the counts and shares that are no column of a table."""
    words = [
        f"safepoints={summary.safepoints}",
        f"stopped={_word(summary.stopped_s)}",
        f"elapsed={_word(summary.elapsed_s)}",
        f"stopped.share={_word(summary.stopped_share)}",
        f"ttsp.share={_word(summary.ttsp_share)}",
    ]
    if summary.slower is not None:
        words += [f"slower.safepoints={summary.slower[0]}", f"slower.stopped={_word(summary.slower[1])}"]
    return " ".join(words)


def _word(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def text_lines(summary: Summary, verdict: str) -> Iterator[str]:
    """`-f text`: the averages, the totals, the tables in seconds, the verdict."""
    yield averages_line(summary.stopped_avg_s, summary.ttsp_avg_s)
    yield totals_line(summary)
    for block in blocks(summary, raw=True):
        yield from block_lines(block)
    yield f"verdict: {printable(verdict)}"


def finding_lines(finding: Finding) -> list[str]:
    """A finding: its code, what was found and seen; then a line for each thing to do."""
    head = f"{finding.severity} {finding.code}: {finding.summary} ({finding.evidence})"
    return [head, *(f"  - {step}" for step in (finding.fix or "").split("; ") if step)]


def to_object(summary: Summary) -> dict[str, Any]:
    """A log's summary for JSON."""
    data = {
        "safepoints": summary.safepoints,
        "stopped_s": summary.stopped_s,
        "stopped_avg_s": summary.stopped_avg_s,
        "ttsp_s": summary.ttsp_s,
        "ttsp_avg_s": summary.ttsp_avg_s,
        "elapsed_s": summary.elapsed_s,
        "stopped_share": summary.stopped_share,
        "ttsp_share": summary.ttsp_share,
        "percentiles": {
            "stopped_s": {
                **dict(zip(_PERCENT_NAMES, (stop for stop, _ in summary.percentiles))),
                "max": summary.stopped_max_s,
            },
            "ttsp_s": {
                **dict(zip(_PERCENT_NAMES, (ttsp for _, ttsp in summary.percentiles))),
                "max": summary.ttsp_max_s,
            },
        },
        "operations": [_operation_object(row, summary) for row in summary.operations],
        "worst": [stop_object(stop) for stop in summary.worst],
        "minutes": None if summary.minutes is None else [_minute_object(row) for row in summary.minutes],
        "slower": None if summary.slower is None else {"safepoints": summary.slower[0], "stopped_s": summary.slower[1]},
    }
    rounded: dict[str, Any] = twelve_digits(data)
    return rounded


def _operation_object(row: Operation, summary: Summary) -> dict[str, Any]:
    return {
        "operation": row.name,
        "safepoints": row.safepoints,
        "stopped_s": row.stopped_s,
        "stopped_avg_s": row.stopped_avg_s,
        "stopped_p99_s": row.p99_s,
        "stopped_max_s": row.stopped_max_s,
        "ttsp_s": row.ttsp_s,
        "share": row.stopped_s / summary.stopped_s if summary.stopped_s else None,
    }


def stop_object(stop: Stop) -> dict[str, Any]:
    """One stop for JSON."""
    return {
        "time": stop.stamp.text or None,
        "uptime_s": stop.stamp.uptime_s,
        "operation": stop.operation,
        "stopped_s": stop.stopped_s,
        "ttsp_s": stop.ttsp_s,
        "late_threads": list(stop.late_threads),
    }


def _minute_object(row: Minute) -> dict[str, Any]:
    return {
        "minute": row.label,
        "safepoints": row.safepoints,
        "stopped_s": row.stopped_s,
        "share": row.share,
        "stopped_max_s": row.stopped_max_s,
        "ttsp_s": row.ttsp_s,
        "operation": row.operation,
    }


def stop_row(stop: Stop) -> tuple[object, ...]:
    """One stop for CSV."""
    return (
        stop.stamp.text or None,
        stop.stamp.uptime_s,
        stop.stopped_s,
        stop.ttsp_s,
        stop.operation,
        ", ".join(stop.late_threads) or None,
    )


def sheet(summary: Summary, by: str | None) -> Sheet:
    """What `-f csv` writes of a summary: the operations, the minutes, or the worst stops."""
    if by is None:
        return Sheet(STOP_HEADER, map(stop_row, summary.worst))
    rows = (
        [_minute_object(row) for row in summary.minutes or []]
        if by == "minute"
        else [_operation_object(row, summary) for row in summary.operations]
    )
    header = {
        "minute": ("minute", "safepoints", "stopped_s", "share", "stopped_max_s", "ttsp_s", "operation"),
        "operation": (
            "operation",
            "safepoints",
            "stopped_s",
            "stopped_avg_s",
            "stopped_p99_s",
            "stopped_max_s",
            "ttsp_s",
            "share",
        ),
    }[by]
    return Sheet(header, [[row[key] for key in header] for row in rows])


def _apart(points: Sequence[Point]) -> list[Point]:
    """The first few that do not stand so near to each other that their labels would collide."""
    span = max((point.at_s for point in points), default=0.0) - min((point.at_s for point in points), default=0.0)
    chosen: list[Point] = []
    for point in points:
        if len(chosen) == _LABELLED:
            break
        if all(abs(point.at_s - other.at_s) > span * _LABEL_WIDTH for other in chosen):
            chosen.append(point)
    return chosen


def timeline(points: Sequence[Point], clock: str | None, summary: Summary, title: str, note: str) -> DotsChart:
    """The picture: each stop at its time, by operation, with its TTSP below it; the slowest are named."""
    order = [row.name for row in summary.operations] or [None]
    groups = [
        Dots(
            name or "(operation not named)",
            [(point.at_s, point.stopped_s) for point in points if point.operation == name],
        )
        for name in order
    ]
    ttsps = [(point.at_s, point.ttsp_s) for point in points if point.ttsp_s]
    slowest = _apart(sorted(points, key=lambda point: -point.stopped_s))
    return DotsChart(
        title=title,
        groups=[group for group in groups if group.points],
        below=Dots("the way there (TTSP)", ttsps) if ttsps else None,
        labels=[
            (point.at_s, point.stopped_s, f"{point.operation or 'stop'} {duration(point.stopped_s)}")
            for point in slowest
        ],
        x_clock=clock or "number",
        y_title="stopped",
        note=note,
    )
