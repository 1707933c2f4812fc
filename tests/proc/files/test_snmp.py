"""/proc/net/snmp and netstat: the kernel's counters, and damaged ones."""

from __future__ import annotations

import pytest

from opskit.proc.files.snmp import parse_counters
from opskit.proc.fs import ProcFS

TEXT = "Tcp: RtoAlgorithm MaxConn InSegs RetransSegs\nTcp: 1 -1 1837 3\nTcpExt: ListenOverflows ListenDrops\nTcpExt: 21 22\n"


def test_counters_by_name():
    """All numbers, or the wanted ones; -1 is no counter."""
    assert parse_counters(TEXT) == {
        "Tcp.RtoAlgorithm": 1,
        "Tcp.InSegs": 1837,
        "Tcp.RetransSegs": 3,
        "TcpExt.ListenOverflows": 21,
        "TcpExt.ListenDrops": 22,
    }
    assert parse_counters(TEXT, {"TcpExt.ListenDrops", "Tcp.None"}) == {"TcpExt.ListenDrops": 22}


@pytest.mark.parametrize(
    "text", ["", "Tcp: InSegs", "Tcp: InSegs\nUdp: 3\n", "Tcp: InSegs\nTcp: x\n", "\n\n", "Tcp:\nTcp:\n"]
)
def test_other_lines_are_left_out(text):
    """Cut off, of two protocols, no numbers."""
    assert parse_counters(text) == {}


@pytest.mark.parametrize(("name", "counter"), [("snmp", "Tcp.OutSegs"), ("netstat", "TcpExt.ListenOverflows")])
def test_this_kernel(name, counter):
    """It has them."""
    assert ProcFS().load(parse_counters, "net", name)[counter] >= 0
