"""How fast the caches grow, over the samples of a watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.slope import slope
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.analysis.dentry.usage import Usage

WATCHED = ("dentries", "unused", "negative", "dentry_slab_bytes", "inode_slab_bytes", "reclaimable_bytes")


class Sample(NamedTuple):
    """One sample: when (s since the first), the numbers that WATCHED names, and the bytes of each cache."""

    at_s: float
    numbers: Mapping[str, int | None]
    cache_bytes: Mapping[str, int]


def sample(at_s: float, usage: Usage) -> Sample:
    """What a watch keeps of a sample."""
    numbers = {name: getattr(usage, name) for name in WATCHED}
    return Sample(at_s, numbers, {cache.name: cache.size_bytes for cache in usage.caches or ()})


def growth_per_min(samples: Sequence[Sample]) -> dict[str, float | None]:
    """The growth per minute of each number in WATCHED (a least-squares slope); None with fewer than two samples."""
    return {name: _per_min((one.at_s, one.numbers[name]) for one in samples) for name in WATCHED}


def cache_growth_per_min(samples: Sequence[Sample]) -> dict[str, float | None]:
    """The bytes per minute that each cache grows by."""
    names = dict.fromkeys(name for one in samples for name in one.cache_bytes)
    return {name: _per_min((one.at_s, one.cache_bytes.get(name)) for one in samples) for name in names}


def _per_min(points: Iterable[tuple[float, int | None]]) -> float | None:
    per_s = slope([(at_s, number) for at_s, number in points if number is not None])
    return None if per_s is None else per_s * 60
