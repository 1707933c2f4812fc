"""Pressure stall information of every kernel that has it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.errors import BadInput
from opskit.proc.files.pressure import parse_pressure, parse_pressures, waiting_share

SOME = "some avg10=0.00 avg60=0.12 avg300=0.09 total=72873122\n"
FULL = "full avg10=0.00 avg60=0.00 avg300=0.00 total=17\n"


def test_both_lines_and_the_kernels_that_have_one():
    """Before 5.13 the cpu has no `full` line; no line is unknown, not 0."""
    assert parse_pressure(SOME + FULL) == parse_pressure(SOME) == 72873122
    assert parse_pressure(FULL) is None


@pytest.mark.parametrize("text", ["some avg10=0.00\n", "x\n", "some total=-1\n"])
def test_what_is_no_pressure(text):
    """A clear error."""
    with pytest.raises(BadInput):
        parse_pressure(text)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    """Never anything but BadInput."""
    with contextlib.suppress(BadInput):
        parse_pressure(text)


def test_both_totals():
    """Each line by its name; one that the kernel lacks is missing."""
    assert parse_pressures(SOME + FULL) == {"some": 72873122, "full": 17}
    assert parse_pressures(SOME) == {"some": 72873122}


def test_the_share_of_a_window():
    """From 0 to 1, whatever the counters do; unknown where one reading or the time is missing."""
    assert waiting_share(1_000_000, 1_500_000, 2.0) == 0.25
    assert (waiting_share(0, 9_000_000, 2.0), waiting_share(7, 0, 2.0)) == (1.0, 0.0)
    assert {waiting_share(None, 1, 2.0), waiting_share(1, None, 2.0), waiting_share(1, 2, 0.0)} == {None}
