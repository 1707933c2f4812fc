"""Packets by interface."""

from __future__ import annotations

import pytest

from opskit.proc.files.net_dev import NetDev, parse_net_dev

TEXT = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 217887 2286    0    1    0     0          0         0 217887 2287    0    0    0     0       0          0
eth0:1:5 6 0 0 0 0 0 0 7 8 0 0 0 0 0 0
"""


def test_the_counters():
    """Without a blank after the colon too; an alias has a colon in its name."""
    assert parse_net_dev(TEXT) == {"lo": NetDev(2286, 1, 2287, 217887), "eth0:1": NetDev(6, 0, 8, 5)}


@pytest.mark.parametrize("line", ["lo:", "lo: 1 2 3", "lo: " + "x " * 16, "lo " + "1 " * 16])
def test_damaged_lines(line):
    """They are left out."""
    assert parse_net_dev(line + "\n") == {}
