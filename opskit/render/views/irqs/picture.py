"""`-o irqs.svg`: the CPUs by what took their time; with -w the time of interrupts and softirqs of each CPU over the looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.quantities import agreeing, duration, plural
from opskit.render.pictures.heatmap import Column, HeatMap
from opskit.render.pictures.heatmap import draw as draw_map
from opskit.render.views.irqs.fields import DROPS, IPIS, MORE, NET_RX, SHARES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.analysis.irqs.moments import Moment
    from opskit.analysis.irqs.result import Result, Row
    from opskit.render.fields import Field
    from opskit.render.report import About

# A rate's colour is its share of the highest one, or of this one where all are lower.
_RATES = ((MORE[0], 10_000), (NET_RX, 10_000), (IPIS, 10_000), (DROPS, 100))


def draw(about: About, result: Result, moments: Sequence[Moment]) -> str:
    """The picture, with the verdict as its first note."""
    notes = [*result.verdict, about.line]
    if len(moments) > 1:
        return draw_map(_over_time(result, moments, notes))
    return draw_map(_now(result, notes))


def _now(result: Result, notes: Sequence[str]) -> HeatMap:
    rows = result.rows
    columns = [_shares(field, rows) for field in SHARES] + [_rates(field, rows, least) for field, least in _RATES]
    title = f"CPU time and interrupts of {plural(len(rows), 'CPU')} over {duration(result.facts.window_s)}"
    meaning = "share of the time; of a rate: of the highest one"
    return HeatMap(title, notes, [f"CPU {row.cpu.use.cpu}" for row in rows], meaning, columns, marks=_marks(result))


def _shares(field: Field[Row], rows: Sequence[Row]) -> Column:
    shares: list[Any] = [field.value(row) for row in rows]
    return Column(field.title, shares, [field.human(row) for row in rows])


def _rates(field: Field[Row], rows: Sequence[Row], least: float) -> Column:
    rates: list[Any] = [field.value(row) for row in rows]
    highest = max([least, *(rate for rate in rates if rate is not None)])
    shares = [None if rate is None else rate / highest for rate in rates]
    return Column(field.title, shares, [field.human(row) for row in rows])


def _over_time(result: Result, moments: Sequence[Moment], notes: Sequence[str]) -> HeatMap:
    cpus = sorted({cpu for moment in moments for cpu in moment.loads})
    looks = [[moment.loads.get(cpu) for cpu in cpus] for moment in moments]
    title = f"Interrupts and softirqs of {plural(len(cpus), 'CPU')}, {plural(len(moments), 'look')} in {duration(moments[-1].at_s)}"
    marks = {cpus.index(result.rows[place].cpu.use.cpu): mark for place, mark in _marks(result).items()}
    names = [f"CPU {cpu}" for cpu in cpus]
    return HeatMap(
        title, notes, names, "share of the time", times_s=[moment.at_s for moment in moments], looks=looks, marks=marks
    )


def _marks(result: Result) -> Mapping[int, str]:
    """What is said of a CPU beside its row: how many threads are pinned to it while it is saturated, else its cause."""
    marks: dict[int, str] = {}
    for place, row in enumerate(result.rows):
        if not row.is_saturated:
            continue
        pinned = sum(row.cpu.use.cpu in victim.allowed for victim in result.victims)
        threads = f"{plural(pinned, 'thread')} {agreeing(pinned, 'is', 'are')} pinned here"
        marks[place] = threads if pinned else row.cause or "saturated"
    return marks
