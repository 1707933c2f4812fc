"""Interfaces: what is a finding, and what each healthy machine has."""

from __future__ import annotations

import pytest
from nextsteps import try_next

from opskit.analysis.host.network import judge
from opskit.collect.host.network import Facts, Link, Table
from opskit.proc.files.net_dev import NetDev

LINK = Link("lo", True, False, True, True, 2, 1000, "full", True, True, False)  # `ip` finds this name on each machine
QUIET = NetDev(10_000, 3, 9_000, 5 << 20, sent_bytes=5 << 20)


def found(*links, added=QUIET, before=QUIET, flaps=(), tables=(), udp=(10_000, 0), name="lo"):
    """The findings of one window of a second."""
    return judge(Facts(1.0, 1, links, {name: before}, {name: added}, dict(flaps), tables, udp))


def codes(findings):
    """Code and severity of each."""
    return [(each.code, each.severity) for each in findings]


def test_a_healthy_busy_machine():
    """Frames of unknown protocols, a full line, a virtual interface that nobody uses, an idle port without a cable, a laptop's radio."""
    assert found(LINK) == []
    assert found(LINK, added=QUIET._replace(dropped=90, received=500)) == []
    assert found(LINK, added=QUIET._replace(dropped=2_000, received=100_000)) == []
    assert found(LINK._replace(is_physical=False, has_gateway=False, has_carrier=False, speed_mbit=None)) == []
    assert found(LINK._replace(has_address=False, has_gateway=False, has_carrier=False)) == []
    assert found(LINK._replace(is_up=False, has_carrier=None)) == []
    radio = LINK._replace(is_wireless=True, speed_mbit=54)
    assert found(radio, added=QUIET._replace(sent_errors=200)) == []
    assert codes(found(LINK, added=QUIET._replace(received_bytes=124_000_000))) == [("network-saturated", "note")]


@pytest.mark.parametrize(
    ("link", "why"),
    [
        (LINK, "the default route leads through it"),
        (LINK._replace(has_gateway=False), "it has addresses"),
        (LINK._replace(has_gateway=False, has_address=False, master=True), "it is part of a bond or bridge"),
        (LINK._replace(is_physical=False), "the default route leads through it"),
    ],
)
def test_a_link_that_is_down(link, why):
    """The reason why it is needed is said."""
    findings = found(link._replace(has_carrier=False))
    assert codes(findings) == [("network-link-down", "warning")]
    assert findings[0].summary == f"the link of lo is down (no carrier), although {why}"
    try_next(findings, "network-link-down")


def test_a_free_port_of_a_bridge():
    """A switch has some; a bridge without any cable is down, and so is a leg of a bond."""
    port = LINK._replace(has_gateway=False, has_address=False, master=True, bridge="br0")
    free = port._replace(name="free", has_carrier=False)
    assert found(port, free) == []
    assert codes(found(port._replace(has_carrier=False), free)) == [("network-link-down", "warning")] * 2
    assert codes(found(port._replace(bridge=None), free._replace(bridge=None))) == [("network-link-down", "warning")]


def test_a_link_that_flaps_and_what_it_negotiated():
    """One change of the carrier is its end; half duplex is wrong, 100 Mbit/s may be all that it can do."""
    flapping = found(LINK, flaps={"lo": 4})
    assert codes(flapping) == [("link-flapping", "warning")]
    try_next(flapping, "link-flapping")
    half = found(LINK._replace(duplex="half", speed_mbit=100))
    assert codes(half) == [("network-half-duplex", "warning")]
    try_next(half, "network-half-duplex")
    slow = found(LINK._replace(speed_mbit=100))
    assert codes(slow) == [("network-link-slow", "note")]
    try_next(slow, "network-link-slow")


def test_errors_and_drops():
    """By their share of the window; the kinds of errors are named."""
    errors = found(LINK, added=QUIET._replace(errors=20, frame=15, fifo=5))
    assert codes(errors) == [("network-errors", "warning")]
    assert "0.2 % of the received (15 damaged frames, 5 overruns of the device's buffer) frames" in errors[0].summary
    try_next(errors, "network-errors")
    assert codes(found(LINK, added=NetDev(10, 0, 300, sent_errors=4, carrier=4))) == [("network-errors", "warning")]
    drops = found(LINK, added=QUIET._replace(sent_dropped=1_000))
    assert codes(drops) == [("network-drops", "warning")]
    assert drops[0].share == pytest.approx(0.1)
    try_next(drops, "network-drops")


def test_errors_since_boot_are_a_note():
    """They say nothing about now."""
    findings = found(LINK, before=QUIET._replace(errors=150))
    assert codes(findings) == [("network-errors-counted", "note")]
    try_next(findings, "network-errors-counted")


def test_a_line_that_is_full_and_drops():
    """Together they are a warning."""
    full = NetDev(100, 0, 90_000, sent_bytes=124_000_000, sent_dropped=200)
    findings = found(LINK, added=full)
    assert codes(findings) == [("network-saturated", "warning")]
    try_next(findings, "network-saturated")


def test_udp_receive_buffers():
    """A percent of all datagrams, and ten."""
    assert found(LINK, udp=(100_000, 50)) == []
    assert found(LINK, udp=(100, 5)) == []
    assert found(LINK, udp=None) == []
    findings = found(LINK, udp=(9_000, 1_000))
    assert findings[0].summary.startswith("1,000 UDP datagrams were lost in 1.0 s, 10 % of all")
    try_next(findings, "udp-receive-buffer-full")


def test_tables_of_neighbours():
    """Full where an entry was refused in the window."""
    assert found(LINK, tables=(Table("ipv4", 500, 1024, 0), Table("ipv6", 5, None, None))) == []
    nearly = found(LINK, tables=(Table("ipv4", 1000, 1024, 0),))
    assert codes(nearly) == [("neighbour-table-nearly-full", "warning")]
    full = found(LINK, tables=(Table("ipv6", 1024, 1024, 7),))
    assert codes(full) == [("neighbour-table-full", "error")]
    assert full[0].fix == "sysctl -w net.ipv6.neigh.default.gc_thresh3=2048"
    try_next(nearly, "neighbour-table-nearly-full")
    try_next(full, "neighbour-table-full")
