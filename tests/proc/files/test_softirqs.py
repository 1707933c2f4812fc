"""Softirqs by kind and CPU."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.files.softirqs import parse_softirqs, softirqs_since

TEXT = "                    CPU0       CPU1\n          HI:          0          2\n       TIMER:    2983133    3430305\n      NET_RX: 4294967295  100384062\n"


def test_the_counters():
    """By kind, then CPU."""
    assert parse_softirqs(TEXT)["TIMER"] == {0: 2983133, 1: 3430305}


def test_what_has_been_added():
    """By CPU, then kind; a counter that wraps, a kind that is new, a CPU that came meanwhile."""
    later = TEXT.replace("4294967295", "         9").replace("HI", "HRTIMER")
    assert softirqs_since(parse_softirqs(TEXT), parse_softirqs(later)) == {
        0: {"TIMER": 0, "NET_RX": 10}, 1: {"TIMER": 0, "NET_RX": 0},
    }  # fmt: skip
    assert softirqs_since(parse_softirqs(TEXT), parse_softirqs(TEXT.replace("CPU1", "CPU5"))).keys() == {0}


@pytest.mark.parametrize("text", ["", "HI: 0 0\n", "CPU0 x\n"])
def test_another_heading(text):
    """It is no /proc/softirqs."""
    with pytest.raises(BadInput):
        parse_softirqs(text)


@pytest.mark.parametrize("line", ["HI:", "HI: 1", "HI: 1 2 3", "HI: 1 x", "nothing"])
def test_damaged_lines(line):
    """They are left out."""
    assert parse_softirqs(f"CPU0 CPU1\n{line}\n").get("HI") is None
