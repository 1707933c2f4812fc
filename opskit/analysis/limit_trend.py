"""Headroom over time: how fast it shrinks, and when none is left at this rate. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class HeadroomSample:
    """One look: when (seconds since the first), how many more threads could start, and what would stop them."""

    at_s: float
    threads_left: int | None
    binding: str | None
    in_use: int | None


@dataclass(frozen=True)
class Trend:
    """`per_min` is negative where headroom shrinks; `zero_in_s` is None where it does not."""

    per_min: float
    zero_in_s: float | None


def trend(samples: Sequence[HeadroomSample]) -> Trend | None:
    """The line of least squares through the samples of the limit that binds now; None for fewer than two of them."""
    if not samples or samples[-1].threads_left is None:
        return None
    binding = samples[-1].binding
    points = [
        (sample.at_s, sample.threads_left)
        for sample in samples
        if sample.threads_left is not None and sample.binding == binding
    ]
    mean_at = sum(at for at, _ in points) / len(points)
    mean_left = sum(left for _, left in points) / len(points)
    spread = sum((at - mean_at) ** 2 for at, _ in points)
    if spread == 0:
        return None
    per_s = sum((at - mean_at) * (left - mean_left) for at, left in points) / spread
    last = points[-1][1]
    return Trend(per_s * 60, 0.0 if last == 0 else last / -per_s if per_s < 0 else None)
