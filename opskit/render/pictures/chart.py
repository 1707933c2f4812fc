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


Chart = Union[LineChart, BarChart, DotsChart]
