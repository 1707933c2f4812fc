"""How fast something grows: the slope of a least-squares line, and whether the growth is steady. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

A_TREND = 5  # samples; with fewer a burst of connections looks like a leak
_MOSTLY = 0.8  # of the steps between them
_PARTS = 4


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
    """Whether a count (x, count) never shrinks, and grows in most steps of a trend or in each quarter of them."""
    counts = [count for _, count in points]
    steps = [later - earlier for earlier, later in zip(counts, counts[1:])]
    if len(counts) < A_TREND or min(steps) < 0:
        return False
    edges = [round(part * len(steps) / _PARTS) for part in range(_PARTS + 1)]
    # What is slower than the looks grows in few steps.
    return sum(step > 0 for step in steps) >= _MOSTLY * len(steps) or all(
        counts[end] > counts[start] for start, end in zip(edges, edges[1:])
    )
