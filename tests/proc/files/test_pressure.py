"""Pressure stall information and the load, of every kernel that has them."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.errors import BadInput
from opskit.proc.files.loadavg import parse_cpu_count, parse_loadavg
from opskit.proc.files.pressure import Pressure, parse_pressure
from opskit.proc.fs import ProcFS

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


def test_the_load_and_the_cpus():
    """Runnable tasks now, of how many; the CPUs that are on line."""
    assert parse_loadavg("0.20 0.18 0.12 3/80 11206\n") == (0.20, 3, 80)
    assert parse_cpu_count("cpu  1 2\ncpu0 1\ncpu1 1\nintr 5\n") == 2
    assert parse_cpu_count("") is None
    with pytest.raises(BadInput):
        parse_loadavg("0.20\n")


def test_this_very_machine():
    """What the kernel says here is read."""
    fs = ProcFS()
    assert fs.load(parse_cpu_count, "stat") == os.cpu_count()
    assert fs.load(parse_loadavg, "loadavg").tasks > 0


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    """Never anything but BadInput."""
    for parse in (parse_pressure, parse_loadavg, parse_cpu_count):
        try:
            parse(text)
        except BadInput:
            pass
