"""Masks of CPUs: words of 32 bits, the highest first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.proc.cpu_masks import cpu_mask, parse_cpu_mask


@pytest.mark.parametrize(
    ("cpus", "mask"),
    [
        ((), "0"),
        ((0,), "1"),
        ((0, 1, 4), "13"),
        ((31,), "80000000"),
        ((32,), "1,00000000"),
        ((0, 191), "80000000,00000000,00000000,00000000,00000000,00000001"),
    ],
)
def test_masks(cpus, mask):
    """As rps_cpus takes them: at most eight digits between two commas."""
    assert cpu_mask(cpus) == mask
    assert parse_cpu_mask(mask + "\n") == frozenset(cpus)


@given(st.frozensets(st.integers(min_value=0, max_value=8191)))
def test_a_mask_comes_back(cpus):
    """Every set of CPUs."""
    assert parse_cpu_mask(cpu_mask(cpus)) == cpus


@pytest.mark.parametrize("text", ["", "x", "0x1", "123456789", ",", "1,", "-1", "1 2"])
def test_what_is_no_mask(text):
    """None, and no exception."""
    assert parse_cpu_mask(text) is None
