"""Latency logs as a report: the verdict, a row a tag, the intervals of --by or the pairs of --diff."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from opskit.quantities import plural
from opskit.records import NamedTuple
from opskit.render.fields import TEXT, Field, sheet
from opskit.render.report import Block, Report, Sheet
from opskit.render.views.hdr import sentences
from opskit.render.views.hdr.fields import (
    DIGITS,
    LOG,
    PAIR_LOG,
    PAIR_TAG,
    TAG,
    Row,
    begin_field,
    compared,
    interval_text,
    more_fields,
    of_period,
    pair_fields,
    pair_series,
    plain_pair_fields,
    short_begin_field,
    value_fields,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.analysis.hdr.result import Result, Series
    from opskit.render.pictures.chart import Chart
    from opskit.render.report import About

_MOST_PERIODS = 1 << 32
_MANY = 15  # series: from here on those with most values come first


class Shown(NamedTuple):
    """How to show it. `raw`: plain numbers for programs; `top`: -n; `over_time`: the picture; `written`: the logs of --split, in a directory."""

    raw: bool = False
    json: bool = False
    verbose: bool = False
    top: int | None = None
    over_time: bool = False
    hgrm: bool = False
    written: Sequence[str] | None = None
    directory: str | None = None


def report(about: About, result: Result, shown: Shown) -> Report:
    """The whole report."""
    return Report(
        about,
        [*_blocks(result, shown)],
        verdict=[*sentences.verdict(result)],
        findings=result.findings,
        summary=[*_split(shown)],
        footer=[*sentences.notes(result), *(_of_hgrm(result) if shown.hgrm else ())],
        document=_document(result, shown) if shown.json else None,
        sheet=partial(_sheet, result),
        chart=partial(_chart, result, over_time=shown.over_time),
        draw=partial(_hgrm, result) if shown.hgrm else None,
    )


def target(result: Result, other: str | None = None) -> dict[str, object]:
    """What the report is about."""
    names = [name for name in result.facts.names if name != other]
    return {"log": " ".join(names), "other": other, "unit": result.unit}


def ordered(series: Sequence[Series], top: int | None) -> list[Series]:
    """As they come in the log; of many, or where -n cuts, those with most values first."""
    if len(series) <= (top or _MANY):
        return [*series]
    return sorted(series, key=lambda each: -each.values.total)


def _blocks(result: Result, shown: Shown) -> Iterator[Block[Any]]:
    top = shown.top or None
    if result.pairs:
        numbers = [row for pair in result.pairs for row in compared(pair)]
        fields = plain_pair_fields() if shown.raw else pair_fields(result.unit)
        named = _names(sentences.naming(result.pairs), PAIR_TAG, PAIR_LOG, raw=shown.raw)
        yield Block([*named, *fields], numbers[:top], len(numbers), one_line=True)
        return
    series = ordered(result.series, top)
    apart = [DIGITS] * sentences.has_twins(series)
    columns = [*_names(series, TAG, LOG, raw=shown.raw), *apart, *value_fields(result.unit, raw=shown.raw)]
    yield Block(columns, [*map(whole, series[:top])], len(series), one_line=True)
    if shown.verbose:
        columns = [*_names(series, TAG, LOG, raw=shown.raw), *more_fields(result.unit, raw=shown.raw)]
        yield Block(columns, [*map(whole, series[:top])], len(series), "the series", one_line=True)
    if periods := _Periods(series):
        named = _names(series, TAG, LOG, raw=shown.raw) if len(series) > 1 or shown.raw else []
        begin, date = (begin_field(), "") if shown.raw else short_begin_field(periods)
        title = f"every {interval_text(result.by_s)}{date}"
        columns = [begin, *named, *apart, *value_fields(result.unit, raw=shown.raw)]
        yield Block(columns, periods[:top], len(periods), title, one_line=True)


def _names(series: Sequence[Series], tag: Field[Any], log: Field[Any], *, raw: bool) -> list[Field[Any]]:
    """The columns that tell the rows apart. `raw`: always the tag."""
    tagged = any(each.tag is not None for each in series)
    logs = len({each.files for each in series}) > 1
    return [*([tag] if tagged or raw else []), *([log] if logs or not (tagged or raw) else [])]


class _Periods(Sequence[Row]):
    """The periods of all series in the order of time: made when they are asked for, because there may be very many."""

    def __init__(self, series: Sequence[Series]) -> None:
        self._series = series
        begins = array("d", (period.begin_s for each in series for period in each.periods))
        places = array("Q", (_place(one, at) for one, each in enumerate(series) for at in range(len(each.periods))))
        self._places: Sequence[int] = places
        if any(begins[at] < begins[at - 1] for at in range(1, len(begins))):
            self._places = array("Q", (places[at] for at in sorted(range(len(places)), key=begins.__getitem__)))

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204
        """A row, or a list of them for a slice that is shorter than all."""
        if isinstance(place, slice):
            places = range(*place.indices(len(self)))
            return self if len(places) == len(self) else [self[each] for each in places]
        series, at = divmod(self._places[place], _MOST_PERIODS)
        return of_period(self._series[series], self._series[series].periods[at])


def _place(series: int, period: int) -> int:
    return series * _MOST_PERIODS + period


def _sheet(result: Result) -> Sheet:
    if result.pairs:
        numbers = [row for pair in result.pairs for row in compared(pair)]
        return sheet([*_identity(lambda row: pair_series(row.pair)), *plain_pair_fields()], numbers)
    timed: list[Field[Any]] = [
        Field("begin_s", value=lambda row: row.begin_s),
        Field("covered_s", value=lambda row: row.covered_s),
    ]
    apart = [DIGITS] * sentences.has_twins(result.series)
    fields = [*_identity(lambda row: row.series), *apart, begin_field(), *timed, *value_fields()]
    return sheet(fields, _Periods(result.series) or map(whole, result.series))


def _identity(of: Callable[[Any], Series]) -> list[Field[Any]]:
    """The logs and the tag, as they are."""
    return [
        Field("log", TEXT, value=lambda row: " ".join(of(row).files)),
        Field("tag", TEXT, value=lambda row: of(row).tag),
    ]


def _document(result: Result, shown: Shown) -> tuple[Sequence[Field[Any]], Any]:
    from opskit.render.views.hdr.document import document

    return document(result, verbose=shown.verbose, written=shown.written)


def _split(shown: Shown) -> Iterator[str]:
    if shown.written is not None:
        yield f"wrote {plural(len(shown.written), 'log')} to {shown.directory}"


def _of_hgrm(result: Result) -> Iterator[str]:
    if len(result.series) > 1:
        count = plural(len(result.series), "distribution")
        yield f"{count}, each after a line with its tag; plotters read one: choose it with --tag, or add them with --merge"
    if any(each.buckets is None for each in result.series):
        yield "the line of the buckets is missing where the histogram itself is not in the file"


def _hgrm(result: Result, _format: str) -> str:
    from opskit.render.views.hdr.picture import distributions

    return distributions(result)


def _chart(result: Result, *, over_time: bool) -> Chart:
    from opskit.render.views.hdr import picture

    return picture.timeline(result) if over_time else picture.curves(result)
