"""Pictures as data, which plot.py draws. Values are bytes, counts or seconds, never formatted text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Union

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Unit = Literal["bytes", "count"]


class Line(NamedTuple):
    """One line, or the dots of one kind: its name and its (x, y) points."""

    name: str
    points: Sequence[tuple[float, float]]


class LineChart(NamedTuple):
    """Lines over a common x: seconds, or without `x_is_time` a number from 1."""

    title: str
    lines: Sequence[Line]
    unit: Unit = "bytes"
    x_is_time: bool = True
    x_title: str | None = None
    note: str | None = None


class BarChart(NamedTuple):
    """Bars from the top down: (name, value). `signed`: they are changes and have a sign."""

    title: str
    bars: Sequence[tuple[str, float]]
    unit: Unit = "bytes"
    note: str | None = None
    signed: bool = True


class DotsChart(NamedTuple):
    """Durations in seconds over time, on a logarithmic scale. `below` is a part of each of them; `labels`: (x, y, text).

    The first of the `labels` matter most: those without room are left out.
    `x_clock`: "utc" (seconds since the epoch), "uptime" (seconds) or "number" (numbered from 1).
    """

    title: str
    groups: Sequence[Line]
    below: Line | None
    labels: Sequence[tuple[float, float, str]]
    x_clock: str
    y_title: str
    note: str | None = None


class Curve(NamedTuple):
    """A percentile curve: (x, value) as steps, x = 1 / (1 - share). `partner`: the line of the same thing on the other side."""

    name: str
    points: Sequence[tuple[float, float]]
    partner: bool = False


class CurvesChart(NamedTuple):
    """Percentile curves over a logarithmic axis of nines. `seconds`: of one unit of the values; None: unknown, they are numbers."""

    title: str
    curves: Sequence[Curve]
    seconds: float | None
    y_title: str
    note: str | None = None


class Panel(NamedTuple):
    """Lines over a common time. A line that is interrupted has None."""

    title: str
    lines: Sequence[tuple[str, Sequence[tuple[float, float | None]]]]


class PanelsChart(NamedTuple):
    """Panels below each other, with the same lines and x axis: a point every `step_s`.

    `seconds`, `x_clock`: as above; "log" counts from the log's start.
    """

    title: str
    panels: Sequence[Panel]
    seconds: float | None
    x_clock: str
    y_title: str
    note: str | None = None
    step_s: float = 1.0


Chart = Union[LineChart, BarChart, DotsChart, CurvesChart, PanelsChart]
