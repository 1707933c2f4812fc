"""Pictures of latency logs, and their distributions as `.hgrm` text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.hdr.curve import points
from opskit.analysis.hdr.result import PERCENTS, UNITS
from opskit.escape import printable
from opskit.render.formats import hgrm
from opskit.render.pictures.chart import Curve, CurvesChart, Panel, PanelsChart
from opskit.render.views.hdr import sentences
from opskit.render.views.hdr.fields import interval_text, percentile_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.hdr.result import Result, Series

_MOST_CURVES, _MOST_PANELS = 24, 12
_APART = 3  # periods without values end a line
_LINES = (50.0, 90.0, 99.0, 99.9)


def curves(result: Result) -> CurvesChart:
    """The percentile curves of all series, of --diff in pairs."""
    if result.pairs:
        named = [*_paired(result)]
    else:
        series = [each for each in result.series if each.curve]
        largest = sorted(series, key=lambda each: -each.values.total)[:_MOST_CURVES]
        named = [Curve(sentences.series_name(each, series), points(each.curve)) for each in series if each in largest]
    shown = named[:_MOST_CURVES]
    rest = len(named) - len(shown) if result.pairs else sum(bool(each.curve) for each in result.series) - len(shown)
    return CurvesChart("Percentiles", shown, _seconds(result), _y_title(result), _note(result, rest))


def _paired(result: Result) -> Iterator[Curve]:
    both = [each for pair in result.pairs for each in pair if each is not None]
    for pair in result.pairs:
        for side, series in (("now", pair.now), ("other", pair.other)):
            if series is not None and series.curve:
                name = sentences.series_name(series, both)
                yield Curve(f"{name} ({side})", points(series.curve), partner=side == "other")


def timeline(result: Result) -> PanelsChart:
    """Percentiles over time, a panel a series."""
    series = [each for each in result.series if any(period.values.total for period in each.periods)]
    largest = sorted(series, key=lambda each: -each.values.total)[:_MOST_PANELS]
    shown = [each for each in series if each in largest]
    panels = [Panel(sentences.series_name(each, result.series), _lines(each, result.by_s or 1.0)) for each in shown]
    dated = all(each.dated for each in shown)
    as_logged = "" if result.unit else ", values as the log has them"
    title = f"Percentiles of every {interval_text(result.by_s)}{as_logged}"
    rest = len(series) - len(shown)
    return PanelsChart(
        title, panels, _seconds(result), "utc" if dated else "log", _y_title(result), _note(result, rest)
    )


def _lines(series: Series, by_s: float) -> list[tuple[str, list[tuple[float, float | None]]]]:
    """The highest first, as they lie in the picture."""
    places = [place for place, percent in enumerate(PERCENTS) if percent in _LINES]
    names = [percentile_name(PERCENTS[place]) for place in places]
    found: dict[str, list[tuple[float, float | None]]] = {name: [] for name in ("max", *reversed(names))}
    last: float | None = None
    for period in series.periods:
        if not period.values.total:
            continue
        if last is not None and period.begin_s - last > _APART * by_s:
            for line in found.values():
                line.append((last, None))
        found["max"].append((period.begin_s, period.values.most))
        for place, name in zip(places, names):
            found[name].append((period.begin_s, period.values.percentiles[place]))
        last = period.begin_s
    return [*found.items()]


def _seconds(result: Result) -> float | None:
    return None if result.unit is None else UNITS[result.unit]


def _y_title(result: Result) -> str:
    return "latency" if result.unit else "value, as the log has it"


def _note(result: Result, rest: int) -> str:
    more = f"; {rest:,} more series are not drawn: choose with --tag" if rest > 0 else ""
    return "; ".join(sentences.verdict(result)) + more


def distributions(result: Result) -> str:
    """The `.hgrm` text; of several series each after a line with its name. Values are in ms where the unit is known."""
    scale = 1e-3 / UNITS[result.unit] if result.unit else 1.0
    return "".join(_distributions(result.series, scale))


def _distributions(series: Sequence[Series], scale: float) -> Iterator[str]:
    for each in series:
        if len(series) > 1:
            yield f"#[Tag = {printable(sentences.series_name(each, series))}]\n"
        yield hgrm.text(each.values, each.curve, each.digits if each.intervals else None, each.buckets, scale)
