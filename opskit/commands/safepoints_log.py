"""`opskit safepoints LOG...`: what the logs of a JVM say of its safepoints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from opskit.analysis.distribution import Scratch
from opskit.analysis.safepoint_advice import Figures, Jdk, advise, verdict
from opskit.analysis.safepoints import Collector, Stop, Timeline, Window, stops_of
from opskit.commands.shared.output import PICTURES, Output, about
from opskit.errors import BadInput
from opskit.escape import printable
from opskit.jvm.logs.log_timestamps import first_stamp
from opskit.jvm.logs.safepoint_log import Batch, SafepointLog
from opskit.proc.user_files import UserFile, open_files
from opskit.render.formats import csv
from opskit.render.report import Report, Sheet
from opskit.render.views import safepoints as view

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.finding import Finding
    from opskit.analysis.safepoints import Summary
    from opskit.host import Host

FLAGS = (
    "JDK 6 to 8 log safepoints with -XX:+PrintGCApplicationStoppedTime (their operations with "
    "-XX:+PrintSafepointStatistics -XX:PrintSafepointStatisticsCount=1), JDK 9 and later with -Xlog:safepoint"
)


@dataclass(frozen=True)
class Options:
    """What was asked. `top`: how many of the worst (0: all); `every_stop`: a CSV of stops has them all, in order."""

    names: tuple[str, ...]
    window: Window | None
    top: int
    slower_than_s: float | None
    by: str | None
    every_stop: bool
    fit_height: bool


@dataclass
class _Reading:
    """What was read so far."""

    log: SafepointLog
    collector: Collector
    lines: int = 0
    count: int = 0
    without: list[str] = field(default_factory=list)
    unreadable_at: str | None = None


def run(host: Host, out: Output, options: Options) -> int:
    """Read, sum up, write. Raises BadInput."""
    logs = open_files(options.names, "safepoints")
    ordered = _in_order(logs)
    timeline = Timeline() if out.format in PICTURES.values() else None
    reading = _Reading(
        SafepointLog(),
        Collector(
            Scratch(_scratch_file),
            top=options.top,
            slower_than_s=options.slower_than_s,
            window=options.window,
            by_minute=options.by == "minute",
            timeline=timeline,
        ),
    )
    if out.format == "csv" and options.by is None and options.every_stop:
        rows = Sheet(view.STOP_HEADER, map(view.stop_row, _stops(reading, ordered, options.slower_than_s)))
        out.write_parts(part.encode("utf-8", "backslashreplace") for part in csv.parts(rows))
        for note in _notes(reading, reading.collector.summary(), ordered, logs):
            click.echo(printable(note), err=True)
        return 0
    code = 0
    try:
        for _ in _batches(reading, ordered):
            pass
    except KeyboardInterrupt:  # a pipe that goes on and on: what came so far counts
        if not reading.count and not reading.log.timeouts:
            raise
        code = 130
    _check(reading, options)
    summary = reading.collector.summary()
    out.emit(_report(host, out, options, reading, summary, ordered, logs, timeline), fit_height=options.fit_height)
    return code


def _scratch_file() -> BinaryIO:
    import tempfile

    return cast("BinaryIO", tempfile.TemporaryFile(prefix="opskit-"))


def _in_order(logs: Sequence[UserFile]) -> list[UserFile]:
    """By the date at which each begins, or by the uptime where not all have one; else as they were named."""
    begins = [_begin(log.head) for log in logs]
    for clock in (0, 1):
        if all(begin[clock] is not None for begin in begins):
            order = sorted(range(len(logs)), key=lambda index: begins[index][clock] or 0.0)
            return [logs[index] for index in order]
    return list(logs)


def _begin(head: bytes) -> tuple[float | None, float | None]:
    for batch in SafepointLog().read([head]):
        if len(batch):
            stamp = first_stamp(batch.head(0))
            if stamp.utc_s is not None or stamp.uptime_s is not None:
                return stamp.utc_s, stamp.uptime_s
    stamp = first_stamp(head)
    return stamp.utc_s, stamp.uptime_s


def _batches(reading: _Reading, logs: list[UserFile]) -> Iterator[Batch]:
    """What counts, log after log. Raises BadInput where none has a safepoint."""
    empty = 0
    for log in logs:
        before, unreadable = reading.count, reading.log.unreadable
        for batch in reading.log.read(log.chunks()):
            reading.count += len(batch)
            yield reading.collector.add(batch)
        reading.lines += reading.log.lines
        empty += not reading.log.lines
        if reading.log.unreadable > unreadable and reading.unreadable_at is None and reading.log.first_unreadable:
            number, text = reading.log.first_unreadable
            reading.unreadable_at = f"{log.name}:{number}: {text.decode('utf-8', 'surrogateescape').strip()[:120]!r}"
        if reading.count == before:
            reading.without.append(log.name)
    if not reading.count and not reading.log.timeouts:
        names = logs[0].name if len(logs) == 1 else f"{logs[0].name} and {len(logs) - 1} more"
        if empty == len(logs):
            raise BadInput(names, f"the file is empty; {FLAGS}")
        unread = "" if reading.unreadable_at is None else f", though one looks like it ({reading.unreadable_at})"
        raise BadInput(names, f"no safepoint in {reading.lines:,} lines{unread}; {FLAGS}")


def _stops(reading: _Reading, logs: list[UserFile], slower_than_s: float | None) -> Iterator[Stop]:
    for batch in _batches(reading, logs):
        for stop in stops_of(batch):
            if slower_than_s is None or stop.stopped_s > slower_than_s:
                yield stop


def _check(reading: _Reading, options: Options) -> None:
    """A window that nothing lies in, minutes without a stamp: no answer is better than an empty one."""
    collector = reading.collector
    name = options.names[0] if len(options.names) == 1 else f"{len(options.names)} logs"
    if collector.undated and not collector.safepoints:
        raise BadInput(
            name,
            "its lines have no stamps that --since and --until could be compared with; give an uptime (90s, 5m) where "
            "the log has uptimes, a date where it has dates",
        )
    if options.window is not None and collector.outside and not collector.safepoints:
        raise BadInput(name, f"none of its {collector.outside:,} safepoints lies between --since and --until")
    summary_first = collector.first
    if options.by == "minute" and reading.count and summary_first.local_s is None and summary_first.uptime_s is None:
        raise BadInput(
            name,
            "its lines have no stamps, so there are no minutes; JDK 6 to 8 write them with -XX:+PrintGCDateStamps, JDK 9 "
            "and later with -Xlog:safepoint:FILE:time,uptime",
        )


def _jdk(log: SafepointLog) -> Jdk:
    if log.jdk is not None:
        return Jdk(log.jdk, log.jdk)
    return Jdk(*log.jdk_range) if log.jdk_range is not None else Jdk()


def _report(
    host: Host,
    out: Output,
    options: Options,
    reading: _Reading,
    summary: Summary,
    ordered: list[UserFile],
    named: list[UserFile],
    timeline: Timeline | None,
) -> Report:
    jdk = _jdk(reading.log)
    late = {name.decode("utf-8", "surrogateescape"): count for name, count in reading.log.late_threads.items()}
    figures = Figures(
        summary.safepoints,
        summary.stopped_s,
        summary.elapsed_s,
        summary.stopped_max_s,
        summary.ttsp_s,
        summary.ttsp_share,
        summary.ttsp_max_s,
    )
    names = " ".join(log.name for log in ordered)
    sentence = verdict(figures, summary.operations, reading.log.timeouts)
    found: list[Finding] = advise(names, figures, jdk, summary.operations, summary.worst, late)
    notes = _notes(reading, summary, ordered, named)
    advice = [line for finding in found for line in view.finding_lines(finding)]
    shown = out.format in ("table", "markdown")
    points = timeline.points if timeline else []
    span = f"{summary.first.text} to {summary.last.text}" if summary.first.text else None
    return Report(
        about(host, {"log": names, "jdk": jdk.name, "span": span}),
        blocks=view.blocks(summary) if shown else (),
        verdict=[sentence],
        summary=advice if shown else (),
        footer=notes if shown or out.format == "json" else [*advice, *notes],
        text=lambda: view.text_lines(summary, sentence),
        data=lambda: {
            **view.to_object(summary),
            "findings": [finding.to_object() for finding in found],
            "late_threads": late,
            "lines": reading.lines,
            "lines_unreadable": reading.log.unreadable,
        },
        sheet=lambda: view.sheet(summary, options.by),
        chart=lambda: view.timeline(
            points,
            timeline.clock if timeline else None,
            summary,
            "Stops of the application",
            sentence + (" Of each moment the slowest stops are drawn." if len(points) < summary.safepoints else ""),
        ),
    )


def _notes(reading: _Reading, summary: Summary, ordered: list[UserFile], named: list[UserFile]) -> list[str]:
    """Coverage, and what the log cannot tell."""
    log, notes = reading.log, []
    if [one.name for one in ordered] != [one.name for one in named]:
        notes.append(f"read in the order of time: {' '.join(one.name for one in ordered)}")
    if log.unreadable:
        notes.append(
            f"{log.unreadable} of {reading.lines:,} lines look like a safepoint's and could not be read; "
            f"the first: {reading.unreadable_at}"
        )
    if log.unreached:
        names = ", ".join(repr(name.decode("utf-8", "surrogateescape")) for name in log.unreached)
        notes.append(f"where the log ends, a safepoint was asked for and not reached yet: it waited for {names}")
    if reading.without:
        notes.append(f"no safepoint in {' '.join(reading.without)}")
    if summary.outside:
        notes.append(f"{summary.outside:,} safepoints lie before --since or after --until")
    if summary.undated:
        notes.append(f"{summary.undated:,} safepoints have no stamp to compare with --since and --until: left out")
    if log.coarse:
        notes.append(
            f"{log.coarse:,} safepoints are told by a table in whole milliseconds, cut off: times are too low by up to 3 ms each"
        )
    if summary.safepoints and not summary.ttsp_count:
        notes.append("this log does not tell the time to the safepoint (TTSP): JDK 8 and later do")
    elif summary.ttsp_count < summary.safepoints:
        notes.append(f"{summary.safepoints - summary.ttsp_count:,} safepoints do not tell their TTSP")
    if summary.safepoints and not summary.operations:
        notes.append(
            "this log does not name the operations: JDK 6 to 8 do with -XX:+PrintSafepointStatistics "
            "-XX:PrintSafepointStatisticsCount=1, JDK 9 and later with -Xlog:safepoint"
        )
    if summary.safepoints and summary.elapsed_s is None:
        notes.append("the share of the time cannot be told: neither stamps nor application times cover the whole log")
    if summary.restarts:
        notes.append(f"the uptime fell back {summary.restarts} times: the log is of several runs of the JVM")
    return notes
