"""The JSON object of `opskit hdr`. All values are in the log's unit, which `unit` names where it is known."""

from __future__ import annotations

from copy import copy
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from opskit.analysis.hdr.curve import levels
from opskit.render.cells import rounded
from opskit.render.fields import COUNT, FLAG, NUMBER, TEXT, Field, list_of, record, records
from opskit.render.views.hdr.fields import (
    begin_text,
    compared,
    of_period,
    plain_number,
    value_fields,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.hdr.result import Pair, Result, Series, Step
    from opskit.collect.hdr.facts import BadLine

_SHARE_DIGITS = 12


def _at(name: str, what: str) -> Field[Any]:
    said = "seconds since the epoch; of a log without a date since its start"
    return Field(name, NUMBER, value=lambda row: plain_number(rounded(getattr(row, name), 3)), help=f"{what}: {said}")


def _values() -> list[Field[Any]]:
    """The numbers of a row, without columns."""
    return [*map(copy, value_fields())]


LEVEL: Sequence[Field[Any]] = (
    Field("percentile", NUMBER, value=lambda level: rounded(level.percent, _SHARE_DIGITS), help="0 to 100"),
    Field("value", NUMBER, value=lambda level: plain_number(level.value), help="the highest one of its cell"),
    Field("total", COUNT, help="how many values are up to it"),
)
STEP: Sequence[Field[Step]] = (
    Field("value", NUMBER, value=lambda step: plain_number(step.value)),
    Field("share", NUMBER, value=lambda step: rounded(step.share, _SHARE_DIGITS), help="0 to 1, of all values"),
    Field("total", COUNT),
)
_COVERED: Field[Any] = Field(
    "covered_s", NUMBER, value=lambda row: rounded(row.covered_s, 3), help="the sum of its intervals' lengths"
)
PERIOD: Sequence[Field[Any]] = (
    Field("begin", TEXT, value=lambda row: begin_text(row.begin_s, dated=row.series.dated), help="UTC, or seconds"),
    _at("begin_s", "when it begins"),
    _COVERED,
    *_values(),
)
SERIES: Sequence[Field[Any]] = (
    Field("tag", help="null: intervals without a tag, or a sum"),
    Field("files", list_of(TEXT), value=lambda row: [*row.series.files]),
    Field("unit", help="as its file says itself; null: it does not"),
    Field("digits", COUNT, help="significant ones"),
    Field("buckets", COUNT, help="of HdrHistogram's sum; null: unknown"),
    Field("intervals", COUNT),
    Field("dated", FLAG, help="whether begin_s and end_s are dates"),
    Field("begin", TEXT, value=lambda row: begin_text(row.series.begin_s, dated=row.series.dated), help="UTC, or seconds"),
    _at("begin_s", "when it begins"),
    _at("end_s", "when it ends"),
    _COVERED,
    *_values(),
    Field("curve", records(LEVEL), help="the percentile curve at the levels of a .hgrm file"),
    Field("steps", records(STEP), help="with -v: every cell with values"),
    Field("periods", records(PERIOD), help="with --by"),
)  # fmt: skip
COMPARED: Sequence[Field[Any]] = (
    Field("value", value=lambda row: row.name, help="count, per_s, mean, p50 …"),
    Field("now", NUMBER),
    Field("other", NUMBER),
    Field("ratio", NUMBER, value=lambda row: rounded(row.ratio, 6), help="now / other"),
)
PAIR: Sequence[Field[Any]] = (
    Field("tag"),
    Field("files", list_of(TEXT), help="null: only OTHER has this tag"),
    Field("other", record(SERIES), help="the series of OTHER; null: it has none"),
    Field("values", records(COMPARED)),
)
BAD: Sequence[Field[BadLine]] = (
    Field("file"),
    Field("line", COUNT, value=lambda bad: bad.number),
    Field("why"),
)
DOCUMENT: Sequence[Field[Any]] = (
    Field("unit", help="of all values: ns, us, ms or s, by --unit or as the files say; null: unknown"),
    Field(
        "likely_unit", help="what they are in if the column Interval_Max is in ms, as by convention; null: it fits none"
    ),
    Field("by_s", NUMBER, help="seconds of each of the periods"),
    Field("lines", COUNT),
    Field("intervals", COUNT),
    Field("intervals_outside", COUNT, help="before --since or after --until"),
    Field("intervals_of_other_tags", COUNT, help="not chosen by --tag"),
    Field("bad_lines", COUNT, help="lines that could not be used"),
    Field("bad", records(BAD), help="the first of them"),
    Field("cut", list_of(TEXT), help="logs whose last line is incomplete"),
    Field("series", records(SERIES)),
    Field("diff", records(PAIR), help="with --diff"),
    Field("written", list_of(TEXT), help="with --split: the logs"),
)


def document(result: Result, *, verbose: bool, written: Sequence[str] | None) -> tuple[Sequence[Field[Any]], Any]:
    """What the object reads. `written`: the files of --split."""
    facts = result.facts
    values = SimpleNamespace(**{**result._asdict(), **facts._asdict()})
    values.intervals_outside, values.intervals_of_other_tags = result.outside, result.other_tags
    values.cut, values.written = [*facts.cut], written
    values.series = [_series(each, verbose=verbose) for each in result.series]
    values.diff = [_pair(pair, verbose=verbose) for pair in result.pairs] or None
    return DOCUMENT, values


def _series(series: Series, *, verbose: bool) -> Any:
    row = whole(series)
    values = SimpleNamespace(**{**series._asdict(), **row._asdict()})
    values.per_s = row.per_s if series.per_s is None else series.per_s
    values.curve = [*levels(series.curve, printed=not series.intervals)]
    values.steps = series.curve if verbose else None
    values.periods = [of_period(series, period) for period in series.periods] or None
    return values


def _pair(pair: Pair, *, verbose: bool) -> Any:
    found = pair.now or pair.other
    return SimpleNamespace(
        tag=None if found is None else found.tag,
        files=None if pair.now is None else [*pair.now.files],
        other=None if pair.other is None else _series(pair.other, verbose=verbose),
        values=[*compared(pair)],
    )
