"""The values of series, each named once: of a whole series, of a period, of a pair. They are in the log's unit."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from opskit.analysis.hdr.judge import ratio
from opskit.analysis.hdr.result import PERCENTS, UNITS
from opskit.quantities import duration, twelve_digits
from opskit.records import NamedTuple
from opskit.render.cells import rate, rate_text, rounded
from opskit.render.fields import COUNT, NUMBER, TEXT, Field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.analysis.hdr.result import Distribution, Pair, Period, Series

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST_S = 253_402_300_799.0  # the year 9999
_WIDE = 1e9  # numbers of more digits do not fit 80 columns; -f text, CSV and JSON have all digits
_WHOLE = 1000  # from here on -f text has no fractions
_YEAR, _DATE = 4, 10  # characters of a date
EMPTY_TAG = "(empty tag)"
_RANKS = {"mean": 3, "p90": 4, "p99.99": 5}  # of the columns that a narrow terminal has no room for


class Row(NamedTuple):
    """What a row of a table shows: a whole series, or one of its periods."""

    series: Series
    values: Distribution
    begin_s: float
    covered_s: float

    @property
    def per_s(self) -> float | None:
        """Values a second of the time that the log covers."""
        return self.values.total / self.covered_s if self.covered_s > 0 else None


class Compared(NamedTuple):
    """A number of both sides of a pair."""

    pair: Pair
    name: str
    now: float | None
    other: float | None

    @property
    def ratio(self) -> float | None:
        """How many times the other one."""
        return ratio(self.now, self.other)


def whole(series: Series) -> Row:
    """The row of a series."""
    return Row(series, series.values, series.begin_s, series.covered_s)


def of_period(series: Series, period: Period) -> Row:
    """The row of an interval of --by."""
    return Row(series, period.values, period.begin_s, period.covered_s)


def plain_number(value: float | None) -> float | None:
    """The value as the log has it: an integer where it is one."""
    return round(value) if isinstance(value, float) and value.is_integer() else value


def value_text(value: float | None, unit: str | None) -> str:
    """`1.2 ms` where the unit is known, else the number, a large one as `5.017e+12`; `-` without a value."""
    if value is None:
        return "-"
    if unit is not None:
        return duration(value * UNITS[unit])
    value = plain_number(value) or 0
    if abs(value) >= _WIDE:
        return f"{value:.4g}"
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= _WHOLE else f"{value:.5g}"


def begin_text(begin_s: float, *, dated: bool) -> str:
    """A date in UTC, or seconds since the log's start."""
    if not dated or not 0 <= begin_s <= _LAST_S:
        return f"{begin_s:.3f}"
    text = (_EPOCH + timedelta(seconds=round(begin_s, 3))).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z").replace(".000Z", "Z")


def interval_text(seconds: float | None) -> str:
    """`10 s`, `5 min`, `500 ms`."""
    if seconds is None:
        return "unknown"
    for size, name in ((3600.0, "h"), (60.0, "min"), (1.0, "s")):
        if seconds >= size and (name == "s" or seconds % size == 0):
            return f"{seconds / size:g} {name}"
    return f"{seconds * 1000:g} ms"


def tag_text(series: Series) -> str:
    """The tag; of intervals without one `-`."""
    return "-" if series.tag is None else series.tag or EMPTY_TAG


def log_text(series: Series) -> str:
    """The logs of a series, without their directories."""
    names = [name.rstrip("/").rpartition("/")[2] or name for name in series.files]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def percentile_name(percent: float) -> str:
    """`p99.9`."""
    return f"p{percent:g}"


def _of_values(
    name: str, title: str, value: Callable[[Distribution], float | None], unit: str | None, *, raw: bool, said: str
) -> Field[Any]:
    def read(row: Row) -> float | None:
        found = plain_number(value(row.values))
        # -f text prints six digits of a fraction.
        return round(found) if raw and found is not None and abs(found) >= _WHOLE else twelve_digits(found)

    return Field(name, NUMBER, title, read, show=partial(value_text, unit=unit), rank=_RANKS.get(name, 0), help=said)


def _percentile(place: int, values: Distribution) -> float | None:
    return values.percentiles[place]


def value_fields(unit: str | None = None, *, raw: bool = False) -> list[Field[Any]]:
    """Columns of numbers. `raw`: for programs, with the unit in the titles."""
    ending = f" {unit}" if raw and unit else ""

    def field(
        name: str, value: Callable[[Distribution], float | None], said: str = "", title: str | None = None
    ) -> Field[Any]:
        shown = name if title is None else title
        return _of_values(name, shown and shown + ending, value, unit, raw=raw, said=said)

    return [
        Field("count", COUNT, "count", lambda row: row.values.total, help="values"),
        Field("per_s", NUMBER, "per s", lambda row: rate(row.per_s), show=rate_text, rank=2, help="values a second of covered_s"),
        field("mean", lambda values: values.mean, "of the middles of the cells, as HdrHistogram has it"),
        field("deviation", lambda values: values.deviation, "standard deviation", ""),
        field("min", lambda values: values.least, "", ""),
        *(field(percentile_name(each), partial(_percentile, place)) for place, each in enumerate(PERCENTS)),
        field("max", lambda values: values.most),
    ]  # fmt: skip


TAG: Field[Any] = Field("tag", TEXT, "tag", lambda row: tag_text(row.series), shrinks=10)
LOG: Field[Any] = Field("log", TEXT, "log", lambda row: log_text(row.series), shrinks=10)
DIGITS: Field[Any] = Field("digits", COUNT, "digits", lambda row: row.series.digits)


def more_fields(unit: str | None = None, *, raw: bool = False) -> list[Field[Any]]:
    """Columns of -v: what else is known of a series."""
    ending = f" {unit}" if raw and unit else ""

    def end(row: Row) -> str:
        return begin_text(row.series.end_s, dated=row.series.dated)

    found = {field.name: field for field in value_fields(unit, raw=raw)}
    found["min"].title, found["deviation"].title = f"min{ending}", f"std dev{ending}"
    return [
        Field("intervals", COUNT, "intervals", lambda row: row.series.intervals),
        DIGITS,
        begin_field(),
        Field("end", TEXT, "end", end, rank=1),
        found["min"],
        found["deviation"],
    ]


def begin_field() -> Field[Any]:
    """When a period begins, in full."""
    return Field("begin", TEXT, "begin", lambda row: begin_text(row.begin_s, dated=row.series.dated))


def short_begin_field(rows: Sequence[Row]) -> tuple[Field[Any], str]:
    """The same for people, without what all rows have in common; and that."""
    texts = [begin_text(row.begin_s, dated=row.series.dated) for row in rows]
    if not all(row.series.dated for row in rows):
        return Field(
            "begin", TEXT, "begin s", lambda row: begin_text(row.begin_s, dated=row.series.dated), right=True
        ), ""
    same = _DATE if len({text[:_DATE] for text in texts}) == 1 else _YEAR
    common = f", {texts[0][:_DATE]}" if same == _DATE else ""

    def shown(row: Row) -> str:
        text = begin_text(row.begin_s, dated=True)
        return text[same:].lstrip("T-").replace("T", " ").rstrip("Z")

    return Field("begin", TEXT, "begin (UTC)", shown), common


def compared(pair: Pair) -> Iterator[Compared]:
    """The numbers of a pair, side by side."""
    now, other = (None if side is None else whole(side) for side in pair)
    for field in value_fields():
        if field.title:
            sides = [None if row is None else field.value(row) for row in (now, other)]
            yield Compared(pair, field.name, *sides)  # type: ignore[arg-type]


def ratio_text(value: float | None) -> str:
    """`x1.31`; `-` where one of the numbers is unknown."""
    if value is None:
        return "-"
    return f"x{value:,.0f}" if value >= 100 else f"x{value:.2f}" if value >= 0.1 else f"x{value:.2g}"


def pair_series(pair: Pair) -> Series:
    """The series that names a pair."""
    found = pair.now or pair.other
    assert found is not None  # noqa: S101  (a pair has one at least)
    return found


def pair_fields(unit: str | None) -> list[Field[Any]]:
    """Columns of a comparison."""

    def shown(row: Compared, value: float | None) -> str:
        return rate_text(value) if row.name == "per_s" else value_text(value, None if row.name == "count" else unit)

    return [
        Field("value", TEXT, "value", lambda row: row.name.replace("_", " ")),
        Field("now", TEXT, "now", lambda row: shown(row, row.now), right=True),
        Field("other", TEXT, "other", lambda row: shown(row, row.other), right=True),
        Field("ratio", NUMBER, "ratio", lambda row: rounded(row.ratio, 4), show=ratio_text),
    ]


def plain_pair_fields() -> list[Field[Any]]:
    """The same as plain numbers."""
    return [
        Field("value", TEXT, "value", lambda row: row.name),
        Field("now", NUMBER, "now"),
        Field("other", NUMBER, "other"),
        Field("ratio", NUMBER, "ratio", lambda row: rounded(row.ratio, 4), show=ratio_text),
    ]


PAIR_TAG: Field[Any] = Field("tag", TEXT, "tag", lambda row: tag_text(pair_series(row.pair)), shrinks=10)
PAIR_LOG: Field[Any] = Field("log", TEXT, "log", lambda row: log_text(pair_series(row.pair)), shrinks=10)
