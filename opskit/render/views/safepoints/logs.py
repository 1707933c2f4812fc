"""How the safepoints of logs are shown."""

from __future__ import annotations

from operator import itemgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from opskit.escape import printable
from opskit.quantities import agreeing, duration, plural
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

_LABELLED = 40  # of the longest stops; the picture has room for fewer
_LABELLED_SHARE = 0.1  # of the longest one
_NO_OPERATIONS = (
    "the operations are not in this log: JDK 6 to 8 name them with -XX:+PrintSafepointStatistics "
    "-XX:PrintSafepointStatisticsCount=1, JDK 9 and later with -Xlog:safepoint"
)
_NO_SHARE = "the share of the time is unknown: neither stamps nor application times cover the whole log"
# The first table: a row for all stops, and one for all TTSPs.
_KINDS = {"what": TEXT, "count": COUNT, **dict.fromkeys(("total", "avg", *PERCENTILES, "max"), SECONDS)}
_FIGURES = [Field(name, _KINDS[name], name, itemgetter(at)) for at, name in enumerate(_KINDS)]


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
        footer=_notes(result),
        text=lambda: _text_lines(summary, result.verdict),
        document=(DOCUMENT, _values(result)),
        sheet=lambda: _sheet(summary, by),
        chart=lambda: timeline(result),
    )


def stop_sheet(stops: Iterable[Stop]) -> Sheet:
    """A row a stop for CSV: there may be millions."""
    rows = (
        (each.stamp.text or None, each.stamp.uptime_s, *each[:3], ", ".join(each.late_threads) or None)
        for each in stops
    )
    return Sheet([field.name for field in STOP if field.json], rows)


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
    found: list[Block[Any]] = [Block(columns(_FIGURES, *_KINDS, raw=raw), rows, len(rows))]

    def add(title: str, rows: Sequence[Any], fields: Sequence[Field[Any]], *names: str) -> None:
        found.append(Block(columns(fields, *names, raw=raw), rows, len(rows), title))

    operation = ("operation",) if summary.operations else ()
    if worst := summary.worst:
        time = ("time",) if any(stop.stamp.text for stop in worst) else ()
        uptime = ("uptime",) if any(stop.stamp.uptime_s is not None for stop in worst) else ()
        late = ("late_threads",) if any(stop.late_threads for stop in worst) else ()
        add("longest stops", worst, STOP, *time, *uptime, "stopped_s", *ttsp, *operation, *late)
    if summary.minutes is not None:
        times = ("stopped_s", "share", "stopped_max_s", *ttsp)
        add("minutes", summary.minutes, MINUTE, "minute", "safepoints", *times, *operation)
    elif summary.operations:
        times = ("stopped_s", "share", "stopped_avg_s", "stopped_p99_s", "stopped_max_s", *ttsp)
        add("operations", summary.operations, OPERATION, "safepoints", *times, *operation)
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
    values = SimpleNamespace(**summary._asdict(), late_threads=result.late_threads, lines=result.facts.lines)
    values.percentiles = {key: dict(zip((*PERCENTILES, "max"), numbers)) for key, numbers in spread.items()}
    values.lines_unreadable = result.facts.log.unreadable
    return values


def _notes(result: Result) -> list[str]:
    """Coverage, and what the log does not have."""
    facts, summary, totals, log = result.facts, result.summary, result.summary.totals, result.facts.log
    unreached = ", ".join(repr(name.decode("utf-8", "surrogateescape")) for name in log.unreached)
    outside, undated, coarse = (plural(count, "safepoint") for count in (summary.outside, summary.undated, log.coarse))
    restarts = plural(summary.restarts, "time")
    known, safepoints = totals.ttsp_count, totals.safepoints
    unread = f"{log.unreadable} of {facts.lines:,} lines look like a safepoint's and could not be read; the first:"
    notes = (
        facts.sorted and f"read in the order of time: {' '.join(facts.names)}",
        log.unreadable and f"{unread} {facts.unreadable_at}",
        unreached and f"the log ends while a safepoint waits for {unreached}",
        facts.without and f"no safepoint in {' '.join(facts.without)}",
        summary.outside and f"{outside} {agreeing(summary.outside, 'lies', 'lie')} before --since or after --until",
        summary.undated and f"{undated} without a stamp to compare with --since and --until: left out",
        log.coarse and f"{coarse} of a table in whole milliseconds: times are too low by up to 3 ms each",
        safepoints and not known and "the time to safepoint (TTSP) is not in this log: JDK 8 and later write it",
        0 < known < safepoints and f"{plural(safepoints - known, 'safepoint')} without TTSP",
        safepoints and not summary.operations and _NO_OPERATIONS,
        safepoints and totals.elapsed_s is None and _NO_SHARE,
        summary.restarts and f"the uptime fell back {restarts}: the log is of several runs of the JVM",
    )
    return [str(note) for note in notes if note]


def timeline(result: Result) -> DotsChart:
    """The picture: each stop at its time, by operation, with its TTSP below it; the slowest are named."""
    from opskit.render.pictures.chart import DotsChart, Line

    summary = result.summary
    points = summary.timeline.points if summary.timeline else []
    groups = []
    for name in [row.name for row in summary.operations] or [None]:
        dots = [(point.at_s, point.stopped_s) for point in points if point.operation == name]
        groups.append(Line(name or "(operation not named)", dots))
    ttsps = [(point.at_s, point.ttsp_s) for point in points if point.ttsp_s]
    longest = max((point.stopped_s for point in points), default=0.0)
    named = sorted((point for point in points if point.stopped_s >= longest * _LABELLED_SHARE), key=_by_length)
    labels = [
        (point.at_s, point.stopped_s, f"{point.operation or 'stop'} {duration(point.stopped_s)}")
        for point in named[:_LABELLED]
    ]
    thinned = " Of each moment the slowest stops are drawn." if len(points) < summary.totals.safepoints else ""
    return DotsChart(
        title="Stops of the application",
        groups=[group for group in groups if group.points],
        below=Line("time to safepoint (TTSP)", ttsps) if ttsps else None,
        labels=labels,
        x_clock=(summary.timeline and summary.timeline.clock) or "number",
        y_title="stopped",
        note=result.verdict + thinned,
    )


def _by_length(point: Point) -> float:
    """The key that sorts the longest first."""
    return -point.stopped_s
