"""Headroom over time: how fast it shrinks, and when none is left at this rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.slope import slope
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class HeadroomSample(NamedTuple):
    """One sample: when (seconds since the first), how many more threads could start, and what would stop them."""

    at_s: float
    threads_left: int | None
    binding: str | None
    in_use: int | None


class Trend(NamedTuple):
    """`per_min` is negative where headroom shrinks; `zero_in_s` is None where it does not."""

    per_min: float
    zero_in_s: float | None


def trend(samples: Sequence[HeadroomSample]) -> Trend | None:
    """The slope of the samples of the limit that binds now; None for fewer than two of them."""
    if not samples or samples[-1].threads_left is None:
        return None
    last = samples[-1]
    per_s = slope([(each.at_s, each.threads_left or 0) for each in samples if each.binding == last.binding])
    if per_s is None:
        return None
    left = last.threads_left or 0
    return Trend(per_s * 60, 0.0 if left == 0 else left / -per_s if per_s < 0 else None)
