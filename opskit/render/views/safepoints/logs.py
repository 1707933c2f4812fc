"""How the safepoints of logs are shown."""

from __future__ import annotations

from operator import itemgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from opskit.escape import printable
from opskit.quantities import duration, plural
from opskit.render.fields import COUNT, TEXT, Field, sheet
from opskit.render.formats.text import block_lines
from opskit.render.report import Block, Report, Sheet
from opskit.render.views.safepoints.fields import (
    DOCUMENT,
    MINUTE,
    OPERATION,
    PERCENTILES,
    SECONDS,
    STOP,
    averages_line,
    columns,
    totals_line,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opskit.analysis.safepoints.logs import Result
    from opskit.analysis.safepoints.minutes import Point
    from opskit.analysis.safepoints.stops import Stop
    from opskit.analysis.safepoints.sums import Summary
    from opskit.render.pictures.chart import DotsChart
    from opskit.render.report import About

_LABELLED = 5
_LABEL_WIDTH = 0.17  # of the picture


# The first table: a row for all stops, and one for all TTSPs.
_FIGURES: Sequence[Field[tuple[object, ...]]] = [
    Field(name, kind, name, itemgetter(at))
    for at, (name, kind) in enumerate(
        [("what", TEXT), ("count", COUNT), *((name, SECONDS) for name in ("total", "avg", *PERCENTILES, "max"))]
    )
]


def target(result: Result) -> dict[str, object]:
    """What the report is about."""
    first, last = result.summary.first.text, result.summary.last.text
    span = f"{first} to {last}" if first else None
    return {"log": " ".join(result.facts.names), "jdk": result.jdk.name, "span": span}


def report(about: About, result: Result, by: str | None) -> Report:
    """The figures, the longest stops, and the operations or minutes."""
    summary = result.summary
    return Report(
        about,
        blocks=blocks(summary),
        verdict=[result.verdict],
        findings=result.findings,
        footer=list(_notes(result)),
        text=lambda: _text_lines(summary, result.verdict),
        document=(DOCUMENT, _values(result)),
        sheet=lambda: _sheet(summary, by),
        chart=lambda: timeline(result),
    )


def stop_sheet(stops: Iterable[Stop]) -> Sheet:
    """A row a stop for CSV: there may be millions."""
    return Sheet(
        [field.name for field in STOP if field.json],
        (
            (
                stop.stamp.text or None,
                stop.stamp.uptime_s,
                stop.stopped_s,
                stop.ttsp_s,
                stop.operation,
                ", ".join(stop.late_threads) or None,
            )
            for stop in stops
        ),
    )


def _sheet(summary: Summary, by: str | None) -> Sheet:
    if by is None:
        return stop_sheet(summary.worst)
    return sheet(MINUTE, summary.minutes or ()) if by == "minute" else sheet(OPERATION, summary.operations)


def blocks(summary: Summary, *, raw: bool = False) -> list[Block[Any]]:
    """The tables. `raw`: for programs, all times in seconds."""
    totals = summary.totals
    stops, ttsps = zip(*summary.percentiles)
    rows = [("stopped", totals.safepoints, totals.stopped_s, totals.stopped_avg_s, *stops, totals.stopped_max_s)]
    ttsp = ("ttsp_s",) if totals.ttsp_count else ()
    if ttsp:
        rows.append(("ttsp", totals.ttsp_count, totals.ttsp_s, totals.ttsp_avg_s, *ttsps, totals.ttsp_max_s))
    found: list[Block[Any]] = [Block(columns(_FIGURES, *(field.name for field in _FIGURES), raw=raw), rows, len(rows))]
    if worst := summary.worst:
        time = ("time",) if any(stop.stamp.text for stop in worst) else ()
        uptime = ("uptime",) if any(stop.stamp.uptime_s is not None for stop in worst) else ()
        operation = ("operation",) if summary.operations else ()
        late = ("late_threads",) if any(stop.late_threads for stop in worst) else ()
        kept = columns(STOP, *time, *uptime, "stopped_s", *ttsp, *operation, *late, raw=raw)
        found.append(Block(kept, worst, len(worst), "longest stops"))
    if summary.minutes is not None:
        longest = ("operation",) if summary.operations else ()
        kept = columns(MINUTE, "minute", "safepoints", "stopped_s", "share", "stopped_max_s", *ttsp, *longest, raw=raw)
        found.append(Block(kept, summary.minutes, len(summary.minutes), "minutes"))
    elif operations := summary.operations:
        times = ("stopped_avg_s", "stopped_p99_s", "stopped_max_s", *ttsp)
        kept = columns(OPERATION, "safepoints", "stopped_s", "share", *times, "operation", raw=raw)
        found.append(Block(kept, operations, len(operations), "operations"))
    return found


def _text_lines(summary: Summary, verdict: str) -> Iterator[str]:
    """The averages, the totals, the tables in seconds, the verdict."""
    yield averages_line(summary.totals)
    yield totals_line(summary.totals, summary.slower)
    for block in blocks(summary, raw=True):
        yield from block_lines(block)
    yield f"verdict: {printable(verdict)}"


def _values(result: Result) -> Any:
    """What DOCUMENT reads."""
    summary, totals = result.summary, result.summary.totals
    stops, ttsps = zip(*summary.percentiles)
    spread = {"stopped_s": (*stops, totals.stopped_max_s), "ttsp_s": (*ttsps, totals.ttsp_max_s)}
    return SimpleNamespace(
        **{
            **summary._asdict(),
            "percentiles": {key: dict(zip((*PERCENTILES, "max"), values)) for key, values in spread.items()},
            "late_threads": result.late_threads,
            "lines": result.facts.lines,
            "lines_unreadable": result.facts.log.unreadable,
        }
    )


def _notes(result: Result) -> Iterator[str]:
    """Coverage, and what the log does not have."""
    facts, summary, totals = result.facts, result.summary, result.summary.totals
    log = facts.log
    if facts.sorted:
        yield f"read in the order of time: {' '.join(facts.names)}"
    if log.unreadable:
        yield (
            f"{log.unreadable} of {facts.lines:,} lines look like a safepoint's and could not be read; "
            f"the first: {facts.unreadable_at}"
        )
    if log.unreached:
        names = ", ".join(repr(name.decode("utf-8", "surrogateescape")) for name in log.unreached)
        yield f"the log ends while a safepoint waits for {names}"
    if facts.without:
        yield f"no safepoint in {' '.join(facts.without)}"
    if summary.outside:
        yield f"{plural(summary.outside, 'safepoint')} {_lie(summary.outside)} before --since or after --until"
    if summary.undated:
        yield f"{plural(summary.undated, 'safepoint')} without a stamp to compare with --since and --until: left out"
    if log.coarse:
        yield f"{plural(log.coarse, 'safepoint')} of a table in whole milliseconds: times are too low by up to 3 ms each"
    if totals.safepoints and not totals.ttsp_count:
        yield "the time to safepoint (TTSP) is not in this log: JDK 8 and later write it"
    elif totals.ttsp_count < totals.safepoints:
        yield f"{plural(totals.safepoints - totals.ttsp_count, 'safepoint')} without TTSP"
    if totals.safepoints and not summary.operations:
        yield (
            "the operations are not in this log: JDK 6 to 8 name them with -XX:+PrintSafepointStatistics "
            "-XX:PrintSafepointStatisticsCount=1, JDK 9 and later with -Xlog:safepoint"
        )
    if totals.safepoints and totals.elapsed_s is None:
        yield "the share of the time is unknown: neither stamps nor application times cover the whole log"
    if summary.restarts:
        yield f"the uptime fell back {plural(summary.restarts, 'time')}: the log is of several runs of the JVM"


def _lie(count: int) -> str:
    return "lies" if count == 1 else "lie"


def timeline(result: Result) -> DotsChart:
    """The picture: each stop at its time, by operation, with its TTSP below it; the slowest are named."""
    from opskit.render.pictures.chart import DotsChart, Line

    summary = result.summary
    points = summary.timeline.points if summary.timeline else []
    groups = [
        Line(
            name or "(operation not named)",
            [(point.at_s, point.stopped_s) for point in points if point.operation == name],
        )
        for name in [row.name for row in summary.operations] or [None]
    ]
    ttsps = [(point.at_s, point.ttsp_s) for point in points if point.ttsp_s]
    slowest = _apart(sorted(points, key=lambda point: -point.stopped_s))
    thinned = " Of each moment the slowest stops are drawn." if len(points) < summary.totals.safepoints else ""
    return DotsChart(
        title="Stops of the application",
        groups=[group for group in groups if group.points],
        below=Line("time to safepoint (TTSP)", ttsps) if ttsps else None,
        labels=[
            (point.at_s, point.stopped_s, f"{point.operation or 'stop'} {duration(point.stopped_s)}")
            for point in slowest
        ],
        x_clock=(summary.timeline and summary.timeline.clock) or "number",
        y_title="stopped",
        note=result.verdict + thinned,
    )


def _apart(points: Sequence[Point]) -> list[Point]:
    """The first few whose labels do not collide."""
    span = max((point.at_s for point in points), default=0.0) - min((point.at_s for point in points), default=0.0)
    chosen: list[Point] = []
    for point in points:
        if len(chosen) == _LABELLED:
            break
        if all(abs(point.at_s - other.at_s) > span * _LABEL_WIDTH for other in chosen):
            chosen.append(point)
    return chosen
