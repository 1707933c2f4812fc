"""Draw percentile curves over an axis of nines, and percentiles over time in panels. The axes come from plot.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.render.pictures.chart import Curve, CurvesChart, Panel, PanelsChart

# The colour-blind palette of Okabe and Ito, the darkest first; in grey dashes and markers differ.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9", "#777777")
_DASHES: Sequence[object] = ("-", (0, (6, 2)), (0, (1, 1.2)), (0, (7, 2, 1.5, 2)), (0, (3, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h")
# Of panels, from the highest line down; where they are equal, the dotted one is drawn over the solid one.
_OVER_TIME = (
    ("#000000", (0, (1, 1.2)), 1.2),
    ("#D55E00", "-", 1.6),
    ("#0072B2", (0, (6, 2)), 1.6),
    ("#CC79A7", (0, (7, 2, 1.5, 2)), 1.4),
    ("#777777", (0, (3, 1.5)), 1.4),
)
_LOG_FROM = 40.0  # times: the highest value above the lowest of the medians
_FEWEST_NINES = 1
_MARKED = 60  # periods: up to here each has a marker
_PER_DECADE = (1, 2, 5)
_LEGEND_CHARACTERS = 130  # of a row


def nine(power: int) -> str:
    """`0 %`, `90 %`, `99 %`, `99.9 %` for 1 / (1 - share) = 10 to that power."""
    digits = "9" * power
    return "0 %" if power == 0 else f"{digits[:2].ljust(2, '0')}{'.' * (power > 2)}{digits[2:]} %"


def draw_curves(axes: Any, chart: CurvesChart, shorten: Callable[[str], str]) -> None:
    """All curves into one picture."""
    values = [value for curve in chart.curves for _, value in curve.points]
    medians = [_at(curve, 2.0) for curve in chart.curves if curve.points]
    most = max(values, default=0.0)
    low = min((value for value in medians if value > 0), default=most)
    axes.set_xscale("log")
    end = max([x for curve in chart.curves for x, _ in curve.points[-1:]], default=10.0)
    nines = max(_FEWEST_NINES, math.ceil(math.log10(end) - 0.31))
    axes.set_xlim(1, max(end, 10.0**nines))
    if low > 0 and most > _LOG_FROM * low:
        least = min((value for value in values if value > 0), default=1.0)
        axes.set_yscale("log")
        axes.set_ylim(least / 1.5, most * 1.5)
    else:
        axes.set_ylim(0, most * 1.08 or 1.0)
    same = -1
    for curve in chart.curves:
        same += not curve.partner or same < 0
        _curve(axes, curve, same)
    axes.set_xticks([10.0**power for power in range(nines + 1)], [nine(power) for power in range(nines + 1)])
    axes.set_xticks([2.0, *([4.0] if nines < 3 else [])], ["50 %", *(["75 %"] if nines < 3 else [])], minor=True)
    axes.set_xlabel("share of all values that are at most as high")
    axes.set_ylabel(chart.y_title)
    axes.grid()
    value_axis(axes, chart.seconds)
    _legend(axes.figure, axes, [shorten(curve.name) for curve in chart.curves])


def _curve(axes: Any, curve: Curve, number: int) -> None:
    turn = number // len(COLORS)
    dash = (0, (2, 1.5)) if curve.partner else _DASHES[(number + turn) % len(_DASHES)]
    color = COLORS[number % len(COLORS)]
    axes.plot(
        [x for x, _ in curve.points], [y for _, y in curve.points], drawstyle="steps-pre", color=color,
        linestyle=dash, linewidth=1.8,
    )  # fmt: skip
    end = curve.points[-1][0] if curve.points else 1.0
    # Markers at the nines, each curve's a little apart, so that they do not cover each other.
    at = [10 ** (power + 0.06 * (number % 12)) for power in range(math.ceil(math.log10(end)))]
    marks = [(x, _at(curve, x)) for x in at if x <= end]
    fill = "white" if curve.partner else color
    axes.plot(
        [x for x, _ in marks], [y for _, y in marks], linestyle="none", marker=MARKERS[number % len(MARKERS)],
        markersize=5.5, color=color, markerfacecolor=fill,
    )  # fmt: skip
    axes.plot(
        [], [], color=color, linestyle=dash, linewidth=1.8, marker=MARKERS[number % len(MARKERS)], markersize=5.5,
        markerfacecolor=fill, label="named",
    )  # fmt: skip


def _at(curve: Curve, x: float) -> float:
    """The value of the step at x."""
    return next((value for end, value in curve.points[1:] if end >= x), curve.points[-1][1])


def _legend(figure: Any, axes: Any, names: Sequence[str], columns: int | None = None) -> None:
    """Below everything. A name is never hidden, as matplotlib does with one that begins with `_`."""
    longest = max([len(name) for name in names], default=1)
    fits = max(1, min(4, _LEGEND_CHARACTERS // (longest + 10)))
    shown = [f" {name}" if name.startswith("_") else name for name in names]
    handles = axes.get_legend_handles_labels()[0]
    figure.legend(
        handles, shown, loc="outside lower left", frameon=False, fontsize=9, ncols=columns or fits, handlelength=4.5
    )  # fmt: skip


def draw_panels(figure: Any, chart: PanelsChart, shorten: Callable[[str], str]) -> Any:
    """A panel a series; the first axes, whose title is the head. The last one has the labels of the time."""
    every = figure.subplots(max(1, len(chart.panels)), 1, sharex=True, squeeze=False)[:, 0]
    for axes, panel in zip(every, chart.panels):
        _panel(axes, panel, chart.step_s)
        axes.set_ylabel(chart.y_title if len(chart.panels) == 1 else "")
        value_axis(axes, chart.seconds, few=3.0 if len(chart.panels) == 1 else 1.6)
        if len(chart.panels) > 1:
            axes.annotate(
                shorten(panel.title), (0, 1), xytext=(2, 3), xycoords="axes fraction", textcoords="offset points",
                fontsize=9, fontweight="bold",
            )  # fmt: skip
    first = every[0]
    _legend(figure, first, [name for name, _ in chart.panels[0].lines] if chart.panels else [], 5)
    return first


def _panel(axes: Any, panel: Panel, step_s: float) -> None:
    values = [value for _, line in panel.lines for _, value in line if value is not None]
    for place, ((name, line), (color, dash, width)) in enumerate(zip(panel.lines, _OVER_TIME)):
        ys = [float("nan") if value is None else value for _, value in line]
        marker = "." if len(line) <= _MARKED else None
        axes.plot(
            [x for x, _ in line], ys, label=name, color=color, linestyle=dash, linewidth=width, marker=marker,
            markersize=5, zorder=9 - place,
        )  # fmt: skip
    times = [x for _, line in panel.lines for x, _ in line]
    if times and max(times) == min(times):
        axes.set_xlim(times[0] - 3 * step_s, times[0] + 3 * step_s)
    above = [value for value in values if value > 0]
    if above and max(above) > _LOG_FROM * min(above):
        axes.set_yscale("log")
        axes.set_ylim(min(above) / 1.5, max(above) * 2)
    else:
        axes.set_ylim(0, max(values, default=0.0) * 1.1 or 1.0)
    axes.grid()


def value_axis(axes: Any, seconds: float | None, few: float = 3.0) -> None:
    """Label the axis of values: durations where the unit is known, on a logarithmic one also 2 and 5 of `few` decades."""
    low, high = axes.get_ylim()
    if axes.get_yscale() == "log":
        decades = math.log10(high / low)
        steps = _PER_DECADE if decades < few else (1,)
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        every = max(1, math.ceil(decades / 8))
        ticks = [step * 10.0**power for power in powers if power % every == 0 for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
    else:
        ticks = _round_ticks(high, seconds)
    axes.set_yticks(ticks, [number_text(tick, seconds) for tick in ticks])
    axes.set_yticks([], minor=True)


def _round_ticks(high: float, seconds: float | None) -> list[float]:
    """Round numbers in the unit that is shown, from 0 up."""
    factor = _shown_unit(high, seconds)[0]
    step = high / factor / 6
    power = 10.0 ** math.floor(math.log10(step))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= step * 0.999) * factor
    return [step * number for number in range(int(high / step) + 1)]


def _shown_unit(value: float, seconds: float | None) -> tuple[float, str]:
    """The unit for values up to that one: how many of the log's it is, and its name."""
    if seconds is None:
        return 1.0, ""
    for name, size in ((" min", 60.0), (" s", 1.0), (" ms", 1e-3), (" us", 1e-6)):
        if value * seconds >= size * (2 if size == 60 else 0.999):
            return size / seconds, name
    return 1e-9 / seconds, " ns"


def number_text(value: float, seconds: float | None) -> str:
    """`200 ms`; a plain number without a unit."""
    if value == 0:
        return "0"
    factor, name = _shown_unit(value, seconds)
    shown = value / factor
    return f"{shown:,.0f}{name}" if shown >= 1000 else f"{shown:.6g}{name}"
