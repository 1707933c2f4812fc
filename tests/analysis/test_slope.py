"""The one least-squares slope."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.slope import is_steady, slope, slope_weights

NUMBERS = st.integers(-(10**6), 10**6)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=20, unique=True), NUMBERS, NUMBERS)
def test_a_line_has_its_own_slope(xs, start, rise):
    """Whatever the x are."""
    assert slope([(x, start + rise * x) for x in xs]) == pytest.approx(rise, rel=1e-6, abs=1e-6)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=20, unique=True), st.integers(0, 2**60))
def test_a_constant_has_the_slope_0(xs, y):
    """Exactly, also for large numbers."""
    assert slope([(x, y) for x in xs]) == 0


@pytest.mark.parametrize("xs", [[], [5], [5, 5, 5]])
def test_fewer_than_two_different_x_have_none(xs):
    """Unknown, not 0."""
    assert slope([(x, 1) for x in xs]) is None
    assert slope_weights(xs) is None


def test_steady_growth():
    """Five samples or more, a rise in four of five steps or in each quarter of many, and never a fall."""
    assert is_steady([(0, 1), (1, 2), (2, 2), (3, 3), (4, 5), (5, 6)])
    assert not is_steady([(0, 1), (1, 2), (2, 3), (3, 4)])
    assert not is_steady([(0, 1), (1, 2), (2, 2), (3, 2), (4, 5), (5, 6)])
    assert not is_steady([(0, 1), (1, 20), (2, 19), (3, 30), (4, 50), (5, 60), (6, 70)])
    assert not is_steady([])
    for counts in ([1, 1, 2, 2, 3, 3, 4, 4, 5], [1] * 10 + [2] * 10 + [3] * 10 + [4] * 10 + [5]):
        assert is_steady([*enumerate(counts)])
        assert not is_steady([*enumerate([*counts[:-1], counts[-1] - 2])])
    assert not is_steady([*enumerate([1] * 30 + [9] * 10)])
