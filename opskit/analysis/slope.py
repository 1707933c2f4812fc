"""How fast something grows: the slope of a least-squares line, and whether the growth is steady. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

A_TREND = 5  # samples; with fewer a burst of connections looks like a leak
_MOSTLY = 0.8  # of the steps between them


def slope_weights(xs: Sequence[float]) -> list[float] | None:
    """Weights w for which sum(w * y) is the slope over these x; None with fewer than two different x."""
    mean = sum(xs) / max(len(xs), 1)
    spread = sum((x - mean) ** 2 for x in xs)
    return [(x - mean) / spread for x in xs] if spread else None


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """The slope of (x, y) points; None with fewer than two different x."""
    weights = slope_weights([x for x, _ in points])
    # Without the first y, the slope of a constant is exactly 0.
    return None if weights is None else sum(w * (y - points[0][1]) for w, (_, y) in zip(weights, points))


def is_steady(points: Sequence[tuple[float, int]]) -> bool:
    """Whether a count (x, count) grows in most steps of a trend, and never shrinks."""
    steps = [later - earlier for (_, earlier), (_, later) in zip(points, points[1:])]
    return len(points) >= A_TREND and sum(step > 0 for step in steps) >= _MOSTLY * len(steps) and min(steps) >= 0
