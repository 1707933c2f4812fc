"""btime, uptime, and the dates and ages of processes by them."""

from __future__ import annotations

import time

import psutil
import pytest

from opskit.errors import BadInput
from opskit.proc.files.boot_time import age_s, parse_boot_time, parse_uptime, started_s
from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import ProcFS


def test_the_two_files():
    assert parse_boot_time("cpu  1 2 3\nintr 5\nbtime 1795242000\nprocesses 9\n") == 1795242000
    assert parse_uptime("350735.47 234388.90\n") == 350735.47


@pytest.mark.parametrize("text", ["", "cpu 1\n", "cpu 1\nbtime\n", "cpu 1\nbtime x\n", "cpu 1\nxbtime 5\n"])
def test_no_boot_time(text):
    with pytest.raises(BadInput, match="btime"):
        parse_boot_time(text)


@pytest.mark.parametrize("text", ["", "\n", "up 5\n", "-5 0\n", "1e9 0\n"])
def test_no_uptime(text):
    with pytest.raises(BadInput, match="seconds"):
        parse_uptime(text)


def test_dates_and_ages_of_processes():
    assert started_s(1000, 250, 100) == 1002.5
    assert age_s(10.0, 250, 100) == 7.5
    assert started_s(None, 250, 100) is None
    assert age_s(None, 250, 100) is None


def test_our_own_start_is_that_of_psutil():
    fs = ProcFS()
    ticks = fs.load(parse_stat, "self", "stat").start_ticks
    start_s = started_s(fs.load(parse_boot_time, "stat"), ticks, 100)
    assert start_s == pytest.approx(psutil.Process().create_time(), abs=2)
    assert age_s(fs.load(parse_uptime, "uptime"), ticks, 100) == pytest.approx(time.time() - start_s, abs=2)
