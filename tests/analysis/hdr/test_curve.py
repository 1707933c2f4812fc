"""The points of a percentile curve in a picture."""

from __future__ import annotations

from hdrseries import curve, histogram, latencies

from opskit.analysis.hdr.curve import levels, points
from opskit.analysis.hdr.result import Step


def test_the_curve_is_the_percentiles():
    """Up to 1 / (1 - share) the value is that of the percentile: nine of ten values are at most 90."""
    found = points(curve(histogram(range(1, 101))))
    at = dict(found)
    assert at[10.0] == 90
    assert at[2.0] == 50
    assert found[0] == (1.0, 1)
    assert found[-1] == (200.0, 100)


def test_a_curve_has_few_points_and_keeps_its_end():
    """However many cells there are; values rise, and the highest one stays."""
    made = histogram(latencies(30_000), digits=4)
    found = points(curve(made))
    assert 300 < len(found) < 1000
    assert [y for _, y in found] == sorted(y for _, y in found)
    assert [x for x, _ in found] == sorted(x for x, _ in found)
    assert found[-1][1] == made.highest_alike(made.most)


def test_one_value_and_none():
    """One is a line up to 90 %; nothing is nothing."""
    assert points(curve(histogram([7]))) == [(1.0, 7), (10.0, 7)]
    assert points([]) == []
    assert [*levels([])] == []


def test_a_printed_curve_has_its_own_levels():
    """What a load generator printed is not thinned again."""
    steps = [Step(5.0, 0.5, 50), Step(9.0, 0.99, 99), Step(10.0, 1.0, 100)]
    assert [(level.percent, level.value) for level in levels(steps, printed=True)] == [(50, 5), (99, 9), (100, 10)]
