"""Packets by interface."""

from __future__ import annotations

import pytest

from opskit.proc.files.net_dev import NetDev, parse_net_dev

TEXT = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 217887 2286    0    1    0     0          0         0 217887 2287    0    0    0     0       0          0
eth0:1:5 6 2 3 4 1 0 0 7 8 9 10 0 11 12 0
"""


def test_the_counters():
    """Without a blank after the colon too; an alias has a colon in its name."""
    lo = NetDev(2286, 1, 2287, 217887, sent_bytes=217887)
    alias = NetDev(
        6, 3, 8, 5, errors=2, fifo=4, frame=1, sent_bytes=7, sent_errors=9, sent_dropped=10, collisions=11, carrier=12
    )
    assert parse_net_dev(TEXT) == {"lo": lo, "eth0:1": alias}
    assert alias.since(lo._replace(received=1)).received == 5


@pytest.mark.parametrize("line", ["lo:", "lo: 1 2 3", "lo: " + "x " * 16, "lo " + "1 " * 16])
def test_damaged_lines(line):
    """They are left out."""
    assert parse_net_dev(line + "\n") == {}
