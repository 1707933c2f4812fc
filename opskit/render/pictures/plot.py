"""Charts as SVG or PNG. The only importer of matplotlib (the extra `plot`)."""

from __future__ import annotations

import io
import logging
import math
import textwrap
import warnings
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from opskit.escape import printable
from opskit.quantities import size
from opskit.render.pictures import curves
from opskit.render.pictures.chart import BarChart, CurvesChart, DotsChart, Line, LineChart, PanelsChart
from opskit.render.pictures.labels import Box, Dot, free_place, merged
from opskit.render.pictures.ticks import byte_unit, elapsed_unit, nice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from opskit.render.pictures.chart import Chart, Unit
    from opskit.render.report import Report

# The colour-blind palette of Okabe and Ito; in grey, the dashes differ.
_COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#999999")
_DASHES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_GROWTH, _SHRINKAGE = "#D55E00", "#56B4E9"
_STYLE = {
    "font.family": ["DejaVu Sans"],  # part of matplotlib
    "font.size": 10,
    "text.parse_math": False,  # a $ in a name is not mathematics
    "svg.fonttype": "none",  # text stays text, to search and copy
    "svg.hashsalt": "opskit",  # the same chart gives the same bytes
    "hatch.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dddddd",
}
_NAME_CHARACTERS = 58  # a longer name loses its middle
_LINE_CHARACTERS = 150  # of the small print under the title
_WIDTH_IN = 11.0
_LEFT = 0.01  # of the width: where the titles begin
_MOST_LABELS = 5  # of dots
_FAR_PT = 20.0  # from here on a line leads from a label to its dot


def draw(report: Report, format_: str) -> bytes:
    """The report's chart with its head line, as "svg" or "png" data."""
    if report.chart is None:
        raise ValueError("this report has no chart")
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # silent about a cache that it cannot write
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a glyph that no font has becomes a box
        return _save(_figure(report.chart(), report.about.line), format_)


def _figure(chart: Chart, head: str) -> Figure:
    figure = Figure(figsize=(_WIDTH_IN, _height_in(chart)), layout="constrained")
    if isinstance(chart, PanelsChart):
        axes = curves.draw_panels(figure, chart, _short)
        _clock_axis(figure.axes[-1], chart.x_clock)
    else:
        axes = figure.add_subplot()
        _on_axes(axes, chart)
    note = "" if chart.note is None else f"\n{_wrapped(chart.note)}"
    figure.suptitle(printable(chart.title), fontsize=13, fontweight="bold", x=_LEFT, ha="left")
    above = "\n" if isinstance(chart, PanelsChart) and len(chart.panels) > 1 else ""  # the panel's own title
    small = axes.set_title(_wrapped(head) + note + above, fontsize=8.5, color="#444444", loc="left", x=0)
    figure.draw_without_rendering()  # settles the layout: from here on sizes and scales are final
    small.set_x((_LEFT * figure.bbox.width - axes.bbox.x0) / axes.bbox.width)  # below the title: the axes may be narrow
    if isinstance(chart, DotsChart):
        _name_dots(figure, axes, chart)
    return figure


def _height_in(chart: Chart) -> float:
    if isinstance(chart, BarChart) and chart.bars:
        return max(3.2, 1.6 + 0.3 * len(chart.bars))
    if isinstance(chart, PanelsChart):
        return max(5.6, 1.9 + 1.7 * len(chart.panels))
    return 5.6 + (0.12 * len(chart.curves) if isinstance(chart, CurvesChart) else 0.0)


def _on_axes(axes: Axes, chart: Chart) -> None:
    if isinstance(chart, BarChart):
        _bars(axes, chart)
    elif isinstance(chart, DotsChart):
        _dots(axes, chart)
    elif isinstance(chart, CurvesChart):
        curves.draw_curves(axes, chart, _short)
    elif isinstance(chart, LineChart):
        _lines(axes, chart)


def _lines(axes: Axes, chart: LineChart) -> None:
    for number, line in enumerate(chart.lines):
        axes.plot(
            [x for x, _ in line.points], [y for _, y in line.points], label=_short(line.name), markersize=5,
            color=_COLORS[number % len(_COLORS)], linestyle=_DASHES[number % len(_DASHES)],
            marker=_MARKERS[number % len(_MARKERS)], linewidth=1.8,
        )  # fmt: skip
    values = [y for line in chart.lines for _, y in line.points]
    if min(values, default=0) >= 0:
        axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    _in_units(axes, "y", values, chart.unit)
    if chart.x_is_time:
        span = max((x for line in chart.lines for x, _ in line.points), default=0)
        _elapsed_axis(axes, span, "the first")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(chart.x_title or "number")
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.12), frameon=False, fontsize=9, ncols=1, handlelength=4)


def _bars(axes: Axes, chart: BarChart) -> None:
    """Bars for growth to the right, solid; for shrinkage to the left, hatched; each with its signed number."""
    values = [value for _, value in chart.bars]
    for place, value in enumerate(values):
        grows = value >= 0
        axes.barh(
            place, value, height=0.72, color=_GROWTH if grows else _SHRINKAGE, hatch=None if grows else "////",
            edgecolor="white" if grows else "#1b4f72", linewidth=0.5,
        )  # fmt: skip
        axes.annotate(
            _number(value, chart), (value, place), xytext=(4 if grows else -4, 0), textcoords="offset points",
            ha="left" if grows else "right", va="center", fontsize=9,
        )  # fmt: skip
    axes.set_yticks(range(len(values)), [_short(name) for name, _ in chart.bars])
    axes.invert_yaxis()
    axes.margins(x=0.14)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    _in_units(axes, "x", values, chart.unit)


def _dots(axes: Axes, chart: DotsChart) -> None:
    """Each kind in its own colour and shape; rare kinds are drawn last, so that they stay visible."""
    shown = [*chart.groups[: len(_COLORS) - 1]]
    if rest := chart.groups[len(_COLORS) - 1 :]:
        shown.append(Line(f"{len(rest)} other operations", [point for group in rest for point in group.points]))
    if chart.below is not None:
        axes.scatter(
            [x for x, _ in chart.below.points], [y for _, y in chart.below.points], label=chart.below.name,
            marker="_", s=26, color="#555555", linewidths=1.0, alpha=0.7,
        )  # fmt: skip
    for number, group in sorted(enumerate(shown), key=lambda item: -len(item[1].points)):
        axes.scatter(
            [x for x, _ in group.points], [y for _, y in group.points], label=_short(group.name),
            marker=_MARKERS[number % len(_MARKERS)], s=20, color=_COLORS[number % len(_COLORS)], alpha=0.8, linewidths=0,
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylabel(chart.y_title)
    axes.grid()
    axes.margins(y=0.12)
    _decades(axes)
    _clock_axis(axes, chart.x_clock)
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.12), frameon=False, fontsize=9, ncols=3)


def _decades(axes: Axes) -> None:
    """Label a logarithmic axis of durations: each decade, of which one is shown at least, and of few decades 2 and 5 of each."""
    low, high = axes.get_ylim()
    if high < 10 * low:
        middle = math.sqrt(low * high)
        low, high = axes.set_ylim(middle / math.sqrt(10), middle * math.sqrt(10))
    few = high < 100 * low
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _duration(value)))
    axes.yaxis.set_minor_formatter(
        FuncFormatter(lambda value, _: _duration(value) if few and f"{value:e}"[0] in "25" else "")
    )


def _name_dots(figure: Figure, axes: Axes, chart: DotsChart) -> None:
    """Label the first of `chart.labels` that have room; where dots are close, one label counts them."""
    px_per_pt = figure.dpi / 72
    in_px = axes.transData.transform
    dots = merged([Dot(tuple(in_px((x, y))), printable(text)) for x, y, text in chart.labels], px_per_pt)
    drawn = [tuple(in_px(point)) for group in chart.groups for point in group.points]
    outer = Box(*axes.bbox.extents)
    taken: list[Box] = []
    for dot in dots[:_MOST_LABELS]:
        text = dot.text if dot.number == 1 else f"{dot.number} stops, longest: {dot.text}"
        label = axes.annotate(
            text, tuple(axes.transData.inverted().transform(dot.at)), textcoords="offset points", fontsize=8
        )
        label.set_in_layout(False)
        size = label.get_window_extent()
        found = free_place(dot, (size.width, size.height), px_per_pt, outer, taken, drawn)
        if found is None:
            label.remove()
            continue
        taken.append(found.box)
        label.set(ha="left" if found.after else "right")
        label.xyann = found.right_pt, found.up_pt
        if abs(found.up_pt) > _FAR_PT:
            line = {"arrowstyle": "-", "linewidth": 0.5, "color": "#888888"}
            axes.annotate("", label.xy, xytext=label.xyann, textcoords="offset points", arrowprops=line).set_in_layout(
                False
            )


def _elapsed_axis(axes: Axes, span_s: float, since: str) -> None:
    factor, name = elapsed_unit(span_s)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / factor:g}"))
    axes.xaxis.set_major_locator(MultipleLocator(nice(span_s / 8 / factor) * factor))
    axes.set_xlabel(f"{name} since {since}")


def _clock_axis(axes: Axes, clock: str) -> None:
    if clock == "number":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("number in the log, which has no timestamps")
        return
    low, high = axes.get_xlim()
    span = high - low
    if clock in ("uptime", "log"):
        _elapsed_axis(axes, span, "the JVM started" if clock == "uptime" else "the log's start")
        return
    shape = "%H:%M:%S" if span < 2 * 3600 else "%H:%M" if span < 48 * 3600 else "%m-%d %H:%M"
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
    step: float = next((step for step in steps if span / step <= 9), math.ceil(span / 9 / 86400) * 86400)
    if span < 4:
        shape, step = "%H:%M:%S.%f", nice(span / 5)
    axes.xaxis.set_major_locator(MultipleLocator(step))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _clock(x, shape)))
    axes.set_xlabel(f"UTC, {_clock(low, '%Y-%m-%d')}" + ("" if span < 86400 else f" to {_clock(high, '%Y-%m-%d')}"))


def _clock(at_s: float, shape: str) -> str:
    text = (datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=at_s)).strftime(shape)
    return text[:-3] if shape.endswith("%f") else text


def _duration(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 0.999:
            return f"{seconds * factor:g} {unit}"
    return f"{seconds * 1e9:g} ns"


def _in_units(axes: Axes, which: str, values: Sequence[float], unit: Unit) -> None:
    """Label an axis with round numbers of one binary unit."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    low, high = min(values, default=0), max(values, default=0)
    span = max(high, 0) - min(low, 0)
    if unit != "bytes" or not span:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        return
    factor, name = byte_unit(max(abs(low), abs(high)))
    axis.set_major_locator(MultipleLocator(nice(span / 6 / factor) * factor))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / factor:,g} {name}"))


def _number(value: float, chart: BarChart) -> str:
    text = size(abs(value)) if chart.unit == "bytes" else f"{abs(value):,.0f}"
    return text if not chart.signed else ("+" if value >= 0 else "\N{MINUS SIGN}") + text


def _wrapped(text: str) -> str:
    return textwrap.fill(printable(text), _LINE_CHARACTERS)


def _short(name: str) -> str:
    name = printable(name)
    if len(name) <= _NAME_CHARACTERS:
        return name
    tail = _NAME_CHARACTERS * 2 // 3
    return f"{name[: _NAME_CHARACTERS - tail - 1]}…{name[-tail:]}"


def _save(figure: Figure, format_: str) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format=format_, dpi=110, metadata={"Date": None} if format_ == "svg" else None)
    # Another font of the same width for viewers without matplotlib's.
    return out.getvalue().replace(b"'DejaVu Sans'", b"'DejaVu Sans', Verdana, sans-serif")
