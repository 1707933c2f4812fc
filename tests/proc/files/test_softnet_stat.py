"""Packets by CPU: the CPU's number in the line, or the order of the lines; kernels that have fewer columns."""

from __future__ import annotations

import pytest

from opskit.proc.files.softnet_stat import SoftnetCpu, parse_softnet_stat

NOW = "08327861 00000003 00000025 " + "00000000 " * 6 + "00000007 00000001 00000005 {:08x} 00000000 00000005\n"
OLD = "00015c73 00020e76 f0000000 00000000 00000000 00000000 00000000 00000000 00000000\n"


def test_the_cpu_is_in_the_line():
    """CPU 1 is offline: the second line is CPU 2's."""
    found = parse_softnet_stat(NOW.format(0) + NOW.format(2), [0, 2])
    assert found.keys() == {0, 2}
    assert found[2] == SoftnetCpu(0x8327861, 3, 0x25, 7, 1, 5)


def test_without_the_cpus_number_the_lines_are_those_that_are_online():
    """Before Linux 5.14. Where their numbers differ nothing is known."""
    found = parse_softnet_stat(OLD + OLD, [0, 2])
    assert found == dict.fromkeys((0, 2), SoftnetCpu(0x15C73, 0x20E76, 0xF0000000))
    assert parse_softnet_stat(OLD + OLD, [0, 1, 2]) == {}


def test_what_has_been_added():
    """Counters of 32 bits wrap; what a kernel does not have stays unknown."""
    before = SoftnetCpu(0xFFFFFFFF, 1, 2)
    assert SoftnetCpu(9, 1, 5).since(before) == SoftnetCpu(10, 0, 3)
    assert SoftnetCpu(9, 1, 5, 8, 0, 3).since(SoftnetCpu(4, 1, 5, 2, 0, 1)) == SoftnetCpu(5, 0, 0, 6, 0, 3)


@pytest.mark.parametrize("text", ["", "x y z\n", "00000001 00000002\n", "0\n" * 5])
def test_damaged_lines(text):
    """They are left out."""
    assert parse_softnet_stat(text, [0]) == {}
