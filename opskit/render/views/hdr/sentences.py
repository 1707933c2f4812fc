"""The verdict on latency logs, and the notes below the tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from opskit.analysis.hdr.judge import ratio
from opskit.quantities import agreeing, duration, listed, plural
from opskit.render.cells import rate_text
from opskit.render.views.hdr.fields import (
    EMPTY_TAG,
    begin_text,
    log_text,
    pair_series,
    ratio_text,
    tag_text,
    value_text,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.hdr.result import Pair, Result, Series

_P99, _P999 = 2, 3  # places in PERCENTS
_NAMES_SHOWN = 6
_SEVERAL = 2
_CONVENTION = "if Interval_Max is in ms, as by convention, they are {0}: --unit {0}"
_NOT_SAID = "their unit is not in the file: --unit ns, us, ms or s"
_UNKNOWN = "the column Interval_Max fits no unit; give the one of the program that wrote them: --unit ns, us, ms or s"


def verdict(result: Result) -> Iterator[str]:
    """The tail in one sentence."""
    if result.pairs:
        yield _compared(result)
        return
    unit, series = result.unit, [each for each in result.series if each.values.total]
    total = sum(each.values.total for each in series)
    if not series:
        yield f"no values in {plural(result.facts.intervals, 'interval')}"
        return
    worst = max(series, key=_p99)
    tail = f"p99.9 {value_text(worst.values.percentiles[_P999], unit)}, max {value_text(worst.values.most, unit)}"
    covered_s = _covered_s(series)
    counted = plural(total, "value") + (f" in {duration(covered_s)}" if covered_s else "")
    p99 = value_text(_p99(worst), unit)
    if len(result.series) == 1:
        per_s = whole(worst).per_s
        rate = f" ({rate_text(per_s)}/s)" if per_s is not None else ""
        yield f"p99 {p99}, {tail}: {counted}{rate}"
    else:
        tags, logs = {each.tag for each in result.series}, {each.files for each in result.series}
        kind = "tags" if len(tags) == len(result.series) else "logs" if len(logs) == len(result.series) else "series"
        yield f"highest p99: {series_name(worst, result.series)} {p99} ({tail}); {len(result.series):,} {kind}, {counted}"
    yield from _worst_period(result)


def _worst_period(result: Result) -> Iterator[str]:
    """Where to look: a table may have room for the first intervals alone."""
    every = ((each, period) for each in result.series for period in each.periods if period.values.total)
    worst = max(every, key=lambda pair: (pair[1].values.percentiles[_P99], pair[1].values.most), default=None)
    if worst is None or len(worst[0].periods) < _SEVERAL:
        return
    series, (begin_s, _, values) = worst
    who = f" of {series_name(series, result.series)}" if len(result.series) > 1 else ""
    when = begin_text(begin_s, dated=series.dated) + ("" if series.dated else " s after the start")
    p99, most = (value_text(value, result.unit) for value in (values.percentiles[_P99], values.most))
    yield f"worst interval{who}: {when}, p99 {p99}, max {most}"


def _p99(series: Series) -> float:
    return series.values.percentiles[_P99] or 0.0


def _covered_s(series: Sequence[Series]) -> float:
    """The time that the logs cover."""
    covered: dict[tuple[str, ...], float] = {}
    for each in series:
        covered[each.files] = max(covered.get(each.files, 0.0), each.covered_s)
    return sum(covered.values())


def series_name(series: Series, among: Sequence[Series]) -> str:
    """The tag of a series, its log, or both: what tells it from the others; else its digits, too."""
    tagged = any(each.tag is not None for each in among)
    several = len({each.files for each in among}) > 1
    tag = "(no tag)" if series.tag is None else series.tag or EMPTY_TAG
    twins = any(each is not series and (each.tag, each.files) == (series.tag, series.files) for each in among)
    digits = f" ({plural(series.digits, 'digit')})" if twins else ""
    if several and tagged:
        return f"{tag} of {log_text(series)}{digits}"
    return (log_text(series) if several or not tagged else tag) + digits


def has_twins(series: Sequence[Series]) -> bool:
    """Whether some differ in their cells alone: what --merge could not add."""
    return len({(each.files, each.tag) for each in series}) < len(series)


def _compared(result: Result) -> str:
    """The pair whose p99 differs most."""
    both = [(pair.now, pair.other) for pair in result.pairs if pair.now is not None and pair.other is not None]
    if not both:
        tags = (
            [tag_text(each) for each in (pair[side] for pair in result.pairs) if each is not None] for side in (0, 1)
        )
        now, other = (listed(names, _NAMES_SHOWN) or "none" for names in tags)
        return f"no tag is on both sides: {now}; OTHER: {other}"
    one, twin = max(both, key=lambda pair: _distance(pair[0], pair[1]))
    parts = [
        _beside(name, one.values.percentiles[place], twin.values.percentiles[place], result.unit)
        for name, place in (("p99", _P99), ("p99.9", _P999))
    ]
    parts.append(_beside("max", one.values.most, twin.values.most, result.unit))
    among = naming(result.pairs)
    who = f"{series_name(one, among)}: " if len(result.pairs) > 1 else ""
    return who + ", ".join(parts)


def naming(pairs: Sequence[Pair]) -> list[Series]:
    """The series that name the pairs: those of the left side, which may be of several logs; else those of OTHER."""
    return [pair.now for pair in pairs if pair.now is not None] or [pair_series(pair) for pair in pairs]


def _distance(now: Series, other: Series) -> float:
    times = ratio(_p99(now), _p99(other))
    return abs(math.log(times)) if times else 0.0


def _beside(name: str, now: float | None, other: float | None, unit: str | None) -> str:
    return f"{name} {value_text(now, unit)}, other {value_text(other, unit)} ({ratio_text(ratio(now, other))})"


def notes(result: Result) -> Iterator[str]:
    """The unit, what was left out, differing precision."""
    facts = result.facts
    if result.unit is None:
        known = _UNKNOWN if result.likely_unit is None else _CONVENTION.format(result.likely_unit)
        file, said = ("log", known) if facts.intervals else ("file", _NOT_SAID)
        yield f"values are as the {file} has them; {said}"
    if result.outside:
        yield f"{plural(result.outside, 'interval')} {agreeing(result.outside, 'lies', 'lie')} before --since or after --until"
    digits = sorted({each.digits for each in result.series if each.intervals}, reverse=True)
    if len(digits) > 1 and not has_twins(result.series):
        yield f"the precision differs: {'; '.join(_of_digits(each, result.series) for each in digits)}"
    if facts.interrupted:
        yield "interrupted: what was read so far is shown"


def _of_digits(digits: int, series: Sequence[Series]) -> str:
    names = [series_name(each, series) for each in series if each.intervals and each.digits == digits]
    return f"{plural(digits, 'digit')} ({listed(names, _NAMES_SHOWN)})"
