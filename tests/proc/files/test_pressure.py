"""Pressure stall information of every kernel that has it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.errors import BadInput
from opskit.proc.files.pressure import Pressure, parse_pressure

SOME = "some avg10=0.00 avg60=0.12 avg300=0.09 total=72873122\n"
FULL = "full avg10=0.00 avg60=0.00 avg300=0.00 total=17\n"


def test_both_lines_and_the_kernels_that_have_one():
    """Before 5.13 the cpu has no `full` line: unknown, not 0."""
    assert parse_pressure(SOME + FULL) == Pressure(72873122, 17)
    assert parse_pressure(SOME) == Pressure(72873122, None)


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
