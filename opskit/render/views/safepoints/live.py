"""How a live JVM's safepoints are shown: a row an interval, and all of them in a last one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from opskit.analysis.safepoints.live import between
from opskit.escape import printable
from opskit.quantities import plain, plural
from opskit.render.fields import Field, sheet
from opskit.render.report import Block, Report
from opskit.render.views.safepoints.fields import DOCUMENT, INTERVAL, averages_line, columns, totals_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.safepoints.live import Interval, Result
    from opskit.collect.safepoints.live import Facts
    from opskit.render.report import About

_TEXT = (
    ("AT_S", 8, "at_s"),
    ("SAFEPOINTS", 11, "safepoints"),
    ("PER_S", 8, "safepoints_per_s"),
    ("STOPPED_S", 12, "stopped_s"),
    ("SHARE", 12, "stopped_share"),
    ("STOPPED_AVG_S", 14, "stopped_avg_s"),
    ("TTSP_AVG_S", 12, "ttsp_avg_s"),
    ("TTSP_SHARE", 12, "ttsp_share"),
    ("THROTTLED_S", 12, "throttled_s"),
    ("CPU_PSI", 11, "cpu_pressure_share"),
    ("MEMORY_PSI", 11, "memory_pressure_share"),
    ("IO_PSI", 11, "io_pressure_share"),
)
_WHEN: Field[tuple[str, Interval]] = Field("when", title="at s", value=lambda row: row[0], right=True)
_BY_NAME = {field.name: field for field in INTERVAL}
HEADER_LINE = " ".join(title.rjust(width) for title, width, _ in _TEXT)


def target(facts: Facts) -> dict[str, object]:
    """What the report is about."""
    return {"pid": facts.pid, "name": facts.name, "jdk": facts.java or facts.jdk, "unit": facts.unit}


def report(about: About, result: Result) -> Report:
    """The intervals, and all of them together."""
    return Report(
        about,
        blocks=[_block(result)],
        verdict=[result.verdict],
        findings=result.findings,
        footer=_notes(result),
        text=lambda: [HEADER_LINE, *map(interval_line, result.intervals), *closing_lines(result)],
        document=(DOCUMENT, _values(result)),
        sheet=lambda: sheet(INTERVAL, result.intervals),
    )


def newest_line(facts: Facts) -> str:
    """The last interval, below the titles where it is the first. A watch may have a hundred thousand of them."""
    readings = facts.readings
    line = f"{interval_line(between(readings[-2], readings[-1], readings[0].at_s))}\n"
    return line if len(readings) > 2 else f"{HEADER_LINE}\n{line}"


def interval_line(interval: Interval) -> str:
    """One interval for -f text; "-" for unknown."""
    values = {"at_s": f"{interval.at_s:.1f}"}
    line = " ".join(
        (values.get(name) or plain(_BY_NAME[name].value(interval))).rjust(width) for _, width, name in _TEXT
    )
    if not interval.waiting:
        return line
    who = "" if interval.late_thread is None else f" for {printable(interval.late_thread)}"
    return f"{line}  # waiting{who} to reach a safepoint"


def closing_lines(result: Result) -> Iterator[str]:
    """All intervals together, as a log's: the averages, the totals, the verdict."""
    yield averages_line(result.whole.totals)
    yield totals_line(result.whole.totals)
    yield f"verdict: {result.verdict}"


def _block(result: Result) -> Block[Any]:
    """The last interval first: next to the sum on a small screen. A total of 0: no -n shows those that do not fit."""
    rows = [("all", result.whole), *((f"{interval.at_s:.1f}", interval) for interval in reversed(result.intervals))]
    names = [name for _, _, name in _TEXT if name not in ("at_s", "stopped_s")]
    shown = [
        Field(each.name, each.kind, each.title, lambda row, each=each: each.value(row[1]))  # type: ignore[misc]
        for each in columns(INTERVAL, *names)
    ]
    return Block([_WHEN, *shown], rows, 0)


def _values(result: Result) -> Any:
    """What DOCUMENT reads."""
    counters = {"first": result.facts.readings[0], "last": result.facts.readings[-1]}
    per_s = _BY_NAME["safepoints_per_s"].value(result.whole)
    return SimpleNamespace(
        **result.whole._asdict(), safepoints_per_s=per_s, samples=result.intervals, counters=counters
    )


def _notes(result: Result) -> Sequence[str]:
    facts, late = result.facts, plural(result.facts.late_samples, "sample")
    notes = (
        result.whole.totals.ttsp_s is None and "this JVM does not count the time to safepoint (TTSP)",
        result.whole.throttled_s is None and "throttling is unknown: its cgroup counts no CPU quota",
        facts.pressure_of == "machine" and "pressure (PSI) is the whole machine's: its cgroup has none",
        facts.pressure_of is None and "PSI is not available on this kernel",
        facts.late_samples and f"{late} came late: the machine is busy; give a longer -i",
        facts.ended,
    )
    return [str(note) for note in notes if note]
