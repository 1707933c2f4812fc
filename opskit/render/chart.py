"""What a picture shows, as data: render/plot.py draws it. Values are bytes, counts or seconds, never formatted text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Unit = Literal["bytes", "count"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its name and its (x, y) points."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class LineChart:
    """Lines over a common x. `x_is_time`: x is in seconds; otherwise it numbers things from 1."""

    title: str
    lines: Sequence[Line]
    unit: Unit = "bytes"
    x_is_time: bool = True
    x_title: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars from the top down: (name, value). `signed`: they are changes, and show a plus or a minus."""

    title: str
    bars: Sequence[tuple[str, float]]
    unit: Unit = "bytes"
    note: str | None = None
    signed: bool = True


Chart = LineChart | BarChart
