"""Percentile distributions: the bytes of HdrHistogram's own outputPercentileDistribution(), which Distributions.java has written."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from opskit.analysis.hdr.result import Distribution, Step
from opskit.render.formats import hgrm

WRITTEN = Path(__file__).resolve().parents[2] / "fixtures" / "hdr" / "distributions.txt.gz"
CASES = gzip.decompress(WRITTEN.read_bytes()).decode().removeprefix("= ").split("\n= ")


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_the_bytes_of_java(case):
    """Of 1 to 5 digits, none to 16,384 values, in three scales."""
    head, _, text = case.partition("\n")
    digits, scale, buckets, total, mean, deviation, most, *cells = head.split()
    steps = [Step(float(value), 0.0, int(upto)) for value, upto in (cell.split(":") for cell in cells)]
    values = Distribution(int(total), None, float(most), float(mean), float(deviation), ())
    written = hgrm.text(values, steps, int(digits), int(buckets), float(scale))
    assert written.rstrip("\n") == text.rstrip("\n")
    assert written.endswith("]\n")


def test_halves_are_rounded_up_as_java_does():
    """0.125 to two places is 0.13, not 0.12."""
    values = Distribution(1, 0.125, 0.125, 0.125, 0.0, ())
    written = hgrm.text(values, [Step(0.125, 1.0, 1)], 2, 1)
    assert "        0.13 1.000000000000          1\n" in written


def test_large_decimal_values():
    """All digits of a double, as Java writes them."""
    values = Distribution(1, 1e200, 1e200, 1e200, 0.0, ())
    assert f"\n1{'0' * 200}.00 1.000000000000          1\n" in hgrm.text(values, [Step(1e200, 1.0, 1)], 2, 1)


def test_the_highest_decimal_value():
    """It is that of the last cell in the library's text, though getMaxValue() is nearly the next cell."""
    values = Distribution(1, 62.0, 63.99, 63.0, 0.0, ())
    assert "#[Max     =        63.00, " in hgrm.text(values, [Step(63.0, 1.0, 1)], 2, 1)


def test_the_buckets_may_be_unknown():
    """What a load generator printed has no histogram: the line is left out."""
    assert "Buckets" not in hgrm.text(Distribution(0, None, None, None, None, ()), [], 3, None)
