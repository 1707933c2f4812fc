"""The table of neighbours."""

from __future__ import annotations

import pytest

from opskit.proc.files.neighbour_stat import Neighbours, parse_neighbours

HEAD = "entries  allocs   table_fulls\n"


def test_the_counters_of_all_cpus():
    """Hexadecimal; the entries are the same in each line."""
    assert parse_neighbours(f"{HEAD}00000010 00000001 00000002\n00000010 00000005 0000000a\n") == Neighbours(16, 12)
    assert parse_neighbours("entries allocs\n00000003 00000004\n") == Neighbours(3, None)


@pytest.mark.parametrize("text", ["", HEAD, "x\n1\n", "entries\nzz\n"])
def test_other_texts(text):
    """Nothing is known."""
    assert parse_neighbours(text) is None
