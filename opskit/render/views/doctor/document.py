"""Doctor's answer as JSON and as metrics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from opskit.analysis.doctor.watched import key_of
from opskit.records import NamedTuple
from opskit.render.cells import rounded_at
from opskit.render.fields import COUNT, ID, NUMBER, TEXT, Field, Kind, list_of, record, records
from opskit.render.report import Metrics
from opskit.render.views.doctor import sentences
from opskit.render.views.doctor.answer import utc
from opskit.render.views.findings import FINDING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.analysis.doctor.flat import Numbered
    from opskit.analysis.doctor.result import Problem
    from opskit.analysis.doctor.seen import Checked, Gap
    from opskit.analysis.doctor.state import Changes, Kept
    from opskit.analysis.doctor.watched import Past
    from opskit.render.views.doctor.answer import Answer

_TIME = Kind({"type": "string", "format": "date-time"})


class Row(NamedTuple):
    """A finding with what the answer knows about it."""

    answer: Answer
    numbered: Numbered


class Asked(NamedTuple):
    """A JVM that was asked for a thread dump."""

    pid: int
    name: str | None
    pause_s: float | None


class Counted(NamedTuple):
    """How many findings have these labels."""

    code: str
    severity: str
    class_: str
    findings: int


def _of_finding(field: Field[Any]) -> Field[Row]:
    read = field.value
    return Field(field.name, field.kind, value=lambda row: read(row.numbered.finding), help=field.help)


def _of_past(field: Field[Any]) -> Field[Past]:
    read = field.value
    return Field(field.name, field.kind, value=lambda past: read(past.finding), help=field.help)


def _rows(only: Callable[[Numbered, Answer], bool]) -> Callable[[Answer], list[Row]]:
    return lambda answer: [Row(answer, each) for each in answer.findings if only(each, answer)]


def _at(name: str) -> Callable[[Row], object]:
    return lambda row: getattr(row.numbered, name)


NUMBERS: Sequence[Field[Row]] = (
    Field("number", COUNT, value=_at("number"), help="problems have 1 and up, as they are listed"),
    Field("cause", COUNT, value=_at("cause"), help="the number of the nearest finding that explains it"),
    Field("like", COUNT, value=_at("like"), help="the number of the problem of the same code that stands for it"),
    Field("effects", list_of(COUNT), value=_at("effects"), help="numbers of the findings that it explains"),
)
ROW: Sequence[Field[Row]] = (*NUMBERS, *map(_of_finding, FINDING))
PROBLEM: Sequence[Field[Row]] = (
    *ROW,
    Field("worst_class", value=lambda row: _problem(row).class_, help="of it and its effects: by this it is ranked"),
    Field("worst_severity", value=lambda row: _problem(row).severity),
    Field("since_utc", _TIME, value=lambda row: _since(row), help="with -w: since when it stands"),
    Field("change", value=lambda row: _change(row), help="with --since-file: new or worse; null: as before"),
)
COLLAPSED: Sequence[Field[Any]] = (
    Field("code"),
    Field("words", help="how it is said in one line"),
    Field("total", COUNT, value=lambda each: len(each.findings)),
)
CHECKED: Sequence[Field[Checked]] = (
    Field("check", value=lambda each: each.name),
    Field("looked_at", list_of(TEXT), value=lambda each: each.outcome.looked_at),
    Field("findings", COUNT, value=lambda each: len(each.outcome.findings)),
    Field("took_s", NUMBER, value=rounded_at("took_s")),
    Field("cpu_s", NUMBER, value=rounded_at("cpu_s"), help="CPU time of its thread"),
)
UNCHECKED: Sequence[Field[Gap]] = (Field("check"), Field("what"), Field("reason"))
ASKED: Sequence[Field[Asked]] = (
    Field("pid", ID),
    Field("name"),
    Field("pause_s", NUMBER, value=rounded_at("pause_s", 6), help="how long the JVM was stopped"),
)
PAST: Sequence[Field[Past]] = (
    *map(_of_past, FINDING),
    Field("since_utc", _TIME, value=lambda past: utc(past.since_s)),
    Field("last_utc", _TIME, value=lambda past: utc(past.last_s), help="when it was found last"),
    Field("gone_utc", _TIME, value=lambda past: utc(past.gone_s), help="null: it stands"),
    Field("times", COUNT, help="how often it came"),
    Field("samples", COUNT, help="how many samples had it"),
)
KEPT: Sequence[Field[Kept]] = (
    Field("code"),
    Field("severity"),
    Field("subject"),
    Field("summary"),
    Field("since_utc", _TIME, value=lambda each: utc(each.since_s)),
)
CHANGES: Sequence[Field[Changes]] = (
    Field("since_utc", _TIME, value=lambda each: utc(each.since_s), help="the last run; null: this is the first one"),
    Field("new", COUNT, value=lambda each: len(each.new)),
    Field("worse", COUNT, value=lambda each: len(each.worse)),
    Field("gone", records(KEPT)),
    Field("as_before", COUNT, value=lambda each: each.stand),
)
DOCUMENT: Sequence[Field[Answer]] = (
    Field("took_s", NUMBER, value=rounded_at("seen.took_s"), help="the wall time of all checks"),
    Field(
        "problems", records(PROBLEM), value=_rows(lambda each, answer: each.number <= len(answer.result.problems)),
        help="errors and warnings that no other one explains, the most harmful first",
    ),
    Field("findings", records(ROW), value=_rows(lambda _, __: True), help="all, see docs/findings.md"),
    Field("collapsed", records(COLLAPSED), value=lambda answer: answer.result.collapsed, help="in one line of the table"),
    Field("checked", records(CHECKED), value=lambda answer: answer.seen.checked),
    Field("unchecked", records(UNCHECKED), value=lambda answer: answer.seen.unchecked, help="in part or as a whole"),
    Field("asked", records(ASKED), value=lambda answer: [*_asked(answer)], help="JVMs that --ask took a thread dump of"),
    Field(
        "history", records(PAST), value=lambda answer: answer.watched and answer.watched.history,
        help="with -w: every problem that was there",
    ),
    Field("changes", record(CHANGES), help="with --since-file"),
)  # fmt: skip


def _problem(row: Row) -> Problem:
    return row.answer.result.problems[row.numbered.number - 1]


def _since(row: Row) -> str | None:
    watched = row.answer.watched
    return utc(watched.since_s.get(key_of(row.numbered.finding))) if watched is not None else None


def _change(row: Row) -> str | None:
    return sentences.changed(row.answer).get(key_of(row.numbered.finding))


def _asked(answer: Answer) -> Iterator[Asked]:
    for check in answer.seen.checked:
        for pid, pause_s in check.outcome.asked.items():
            yield Asked(pid, answer.names.get(pid), pause_s)


COUNTED: Sequence[Field[Counted]] = (
    Field("code"),
    Field("class", value=lambda each: each.class_),
    Field("severity"),
    Field("findings", COUNT, help="findings of this code (docs/findings.md), class and severity"),
)
RUN: Sequence[Field[Answer]] = (
    Field("checks", COUNT, value=lambda answer: len(answer.seen.checked), help="checks that ran to their end"),
    Field(
        "checks_failed", COUNT, value=lambda answer: len(answer.failed),
        help="checks without an answer: denied, crashed, or late",
    ),
    Field("run_s", NUMBER, value=rounded_at("seen.took_s"), help="the wall time of all checks"),
    Field(
        "last_run_timestamp_s", NUMBER, value=lambda answer: answer.seen.at_s,
        help="when the checks ran, in seconds since the epoch",
    ),
)  # fmt: skip


def metrics(answer: Answer) -> Iterator[Metrics]:
    """One series for each code, class and severity, and what is known of the run."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for each in answer.findings:
        finding = each.finding
        counted[finding.code, finding.severity, finding.class_] += 1
    rows = [Counted(*labels, number) for labels, number in counted.items()]
    yield Metrics("opskit_doctor", COUNTED, rows)
    yield Metrics("opskit_doctor", RUN, [answer])
