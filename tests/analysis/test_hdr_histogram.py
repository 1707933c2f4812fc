"""Histograms with a given number of digits: percentiles as exact ones within the precision, sums, memory."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.hdr_histogram import HdrHistogram

VALUES = st.lists(st.integers(min_value=0, max_value=10**13), min_size=1, max_size=300)
PERCENTS = (0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 100.0)


def of(values, digits=3):
    made = HdrHistogram(digits)
    for value in values:
        made.record(value)
    return made


def exact(values, percent):
    """The value that so many per cent do not exceed."""
    ordered = sorted(values)
    return ordered[max(1, math.ceil(percent / 100 * len(ordered) - 1e-9)) - 1]


@given(VALUES, st.integers(min_value=1, max_value=5))
def test_percentiles_are_exact_within_the_precision(values, digits):
    """Never below the exact one, and above it by less than 10^-digits of it."""
    histogram = of(values, digits)
    for percent, found in zip(PERCENTS, histogram.percentiles(PERCENTS)):
        wanted = exact(values, percent)
        assert wanted <= found <= wanted + wanted * 10**-digits
        assert histogram.percentile(percent) == found
    assert (histogram.least, histogram.most, histogram.total) == (min(values), max(values), len(values))


@given(VALUES, VALUES)
def test_a_sum_is_as_one_histogram_of_all(one, other):
    """Also where one of them is empty."""
    summed = of(one)
    summed.add(of(other))
    summed.add(HdrHistogram(3))
    whole = of(one + other)
    assert [*summed] == [*whole]
    assert (summed.least, summed.most, summed.total) == (whole.least, whole.most, whole.total)
    begun = HdrHistogram(3)
    begun.add(whole)
    assert begun.percentiles(PERCENTS) == whole.percentiles(PERCENTS)


@given(st.integers(min_value=0, max_value=10**15), st.integers(min_value=1, max_value=5))
def test_the_values_of_a_cell(value, digits):
    """It has its value; its neighbours begin where it ends; small values are alone."""
    histogram = HdrHistogram(digits)
    low, high = histogram.lowest_alike(value), histogram.highest_alike(value)
    assert low <= value <= high
    assert histogram.lowest_alike(low) == histogram.lowest_alike(high) == low
    assert histogram.lowest_alike(high + 1) == high + 1
    assert high - low <= value * 10**-digits
    if value < 2 * 10**digits:
        assert low == high


@given(VALUES, st.integers(min_value=0, max_value=10**13))
def test_how_many_are_above(values, limit):
    """Those of the limit's own cell do not count."""
    histogram = of(values)
    assert histogram.above(limit) == sum(histogram.lowest_alike(each) > limit for each in values)


def test_a_value_that_counts_often():
    """As if it was recorded so many times."""
    histogram = HdrHistogram(2)
    histogram.record(100, 99)
    histogram.record(5000)
    histogram.record(7, 0)
    assert (histogram.total, histogram.least, histogram.percentile(99), histogram.percentile(99.5)) == (
        100,
        100,
        100,
        5000,
    )


def test_nothing_was_recorded():
    """No percentile is 0."""
    empty = HdrHistogram()
    assert (empty.percentile(50), empty.percentiles([50, 99]), empty.least, empty.most, empty.total) == (
        None,
        [],
        None,
        None,
        0,
    )


def test_a_million_values_take_few_cells():
    """Memory follows the digits, not the values."""
    histogram = of(range(0, 10**9, 5003), 2)
    assert len([*histogram]) < 256 * 30


@pytest.mark.parametrize("digits", [0, 6, -1])
def test_digits_out_of_range(digits):
    """They are refused."""
    with pytest.raises(ValueError, match="digits from 1 to 5"):
        HdrHistogram(digits)


def test_what_cannot_be_recorded():
    """Negative values, and a sum that would lose digits."""
    with pytest.raises(ValueError, match="from 0 up"):
        HdrHistogram().record(-1)
    with pytest.raises(ValueError, match="fewer digits"):
        HdrHistogram(3).add(HdrHistogram(2))
