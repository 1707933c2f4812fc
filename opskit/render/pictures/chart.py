"""Pictures as data, which plot.py draws. Values are bytes, counts or seconds, never formatted text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Union

if TYPE_CHECKING:
    from collections.abc import Sequence

Unit = Literal["bytes", "count"]


@dataclass(frozen=True)
class Line:
    """One line: its name and its (x, y) points."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class LineChart:
    """Lines over a common x: seconds, or without `x_is_time` a number from 1."""

    title: str
    lines: Sequence[Line]
    unit: Unit = "bytes"
    x_is_time: bool = True
    x_title: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class BarChart:
    """Bars from the top down: (name, value). `signed`: they are changes and have a sign."""

    title: str
    bars: Sequence[tuple[str, float]]
    unit: Unit = "bytes"
    note: str | None = None
    signed: bool = True


@dataclass(frozen=True)
class Dots:
    """Dots of one kind: (x, y) each."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class DotsChart:
    """Durations in seconds over time, on a logarithmic scale. `below` is a part of each of them; `labels`: (x, y, text).

    `x_clock`: "utc" (seconds since the epoch), "uptime" (seconds) or "number" (numbered from 1).
    """

    title: str
    groups: Sequence[Dots]
    below: Dots | None
    labels: Sequence[tuple[float, float, str]]
    x_clock: str
    y_title: str
    note: str | None = None


Chart = Union[LineChart, BarChart, DotsChart]
