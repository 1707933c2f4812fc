"""How fast a number grows over samples. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """The least-squares slope of (x, y) points; None with fewer than two different x."""
    mean_x = sum(x for x, _ in points) / max(len(points), 1)
    mean_y = sum(y for _, y in points) / max(len(points), 1)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else None
