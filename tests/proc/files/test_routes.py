"""Interfaces with routes and addresses."""

from __future__ import annotations

from opskit.proc.files.routes import parse_global_addresses, parse_routes

ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
broken\t0
"""


def test_routes():
    """Which of them lead to a gateway."""
    assert parse_routes(ROUTES) == {"eth0": True, "docker0": False}


def test_addresses():
    """Those of a link and of the loopback do not count."""
    text = "fd00000000000000 04 40 00 82     eth0\nfe80000000000000 05 40 20 80 eth1\n0001 01 80 10 80 lo\nx\n"
    assert parse_global_addresses(text) == {"eth0"}
