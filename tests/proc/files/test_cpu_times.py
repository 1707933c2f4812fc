"""Time of each CPU, and lists of CPUs."""

from __future__ import annotations

import os

import pytest

from opskit.proc.files.cpu_times import CpuTime, parse_cpu_list, parse_cpu_times, parse_switches
from opskit.proc.fs import ProcFS


def test_time_by_cpu():
    """I/O waits are idle time; guest time is counted once; an offline CPU has no line; other lines are left out."""
    text = (
        "cpu  9 9 9 9 9 9 9 9\ncpu0 1 2 3 40 5 6 7 8 1000 1000\ncpu2 1 2 3 4\ncpu3 1 2 3 4 5\ncpux 1 2 3 4 5\nbtime 5\n"
    )
    found = parse_cpu_times(text)
    assert found == {0: CpuTime(1, 2, 3, 40, 5, 6, 7, 8), 3: CpuTime(1, 2, 3, 4, 5)}
    assert [(cpu.idle_ticks, cpu.total_ticks) for cpu in found.values()] == [(45, 72), (9, 15)]
    assert parse_cpu_times("") == {}


def test_time_that_runs_backwards():
    """It has added nothing."""
    before, after = CpuTime(1, 2, 3, 40, 5), CpuTime(4, 2, 3, 39, 6)
    assert after.since(before) == CpuTime(3, 0, 0, 0, 1)


@pytest.mark.parametrize(
    ("text", "count"),
    [("cpu 1\nctxt 567419337\nbtime 5\n", 567419337), ("ctxt \n", None), ("ctxt x\n", None), ("", None)],
)
def test_context_switches(text, count):
    """Of the line ctxt; None without it."""
    assert parse_switches(text) == count


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0-2,8\n", {0, 1, 2, 8}), ("5", {5}), ("", None), ("2-1", None), ("0-99999999", None), ("1-2-3", None)],
)
def test_lists_of_cpus(text, cpus):
    """Numbers and ranges; anything else is unknown."""
    assert parse_cpu_list(text) == cpus


def test_this_machine():
    """Its CPUs are those that Python counts."""
    found = ProcFS().load(parse_cpu_times, "stat")
    assert len(found) == os.cpu_count()
    assert all(0 <= cpu.idle_ticks <= cpu.total_ticks for cpu in found.values())


def test_an_empty_line_of_a_damaged_file_is_left_out():
    """A capture may hold anything."""
    assert list(parse_cpu_times("\ncpu0 1 2 3 4 5 6 7 8\n \n")) == [0]
