"""Growth over the samples of a watch."""

from __future__ import annotations

import pytest

from opskit.analysis.dentry.growth import WATCHED, Sample, cache_growth_per_min, growth_per_min


def at(seconds, count):
    return Sample(seconds, dict.fromkeys(WATCHED) | {"dentries": count}, {"dentry": count * 192})


def test_growth_is_a_slope_per_minute_and_unknown_without_two_samples():
    """Per number and per cache; an unknown number has no growth."""
    assert growth_per_min([at(0, 100)])["dentries"] is None
    growth = growth_per_min([at(0, 100), at(2, 120), at(4, 140)])
    assert growth["dentries"] == pytest.approx(600)
    assert growth["negative"] is None
    assert cache_growth_per_min([at(0, 100), at(2, 120)])["dentry"] == pytest.approx(600 * 192)
