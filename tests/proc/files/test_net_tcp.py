"""TCP sockets: the kernel's words, and damaged ones."""

from __future__ import annotations

from opskit.proc.files.net_tcp import parse_net_tcp
from opskit.proc.tcp_sockets import LISTEN, address_text

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
REST = "00000000:00000000 00:00000000 00000000  1000        0 {} 1 0000000000000000 100 0 0 10 0\n"


def test_addresses_of_both_families():
    """IPv4; IPv6 in brackets; an IPv4-mapped address as IPv4."""
    text = HEAD + "   0: 0100007F:1F90 0700000A:18EB 01 " + REST.format(43219)
    text += "   1: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A " + REST.format(5)
    text += "   2: 00000000000000000000000001000000:C000 B80D0120000000000000000007000000:18EB 01 " + REST.format(6)
    text += "   3: 0000000000000000FFFF00000100007F:C001 0000000000000000FFFF00000700000A:18EB 01 " + REST.format(7)
    assert [
        (each.inode, each.family, each.state, address_text(each.local, each.local_port), _peer(each))
        for each in parse_net_tcp(text, "little")
    ] == [
        (43219, 2, 1, "127.0.0.1:8080", "10.0.0.7:6379"),
        (5, 10, LISTEN, "[::]:8080", "[::]:0"),
        (6, 10, 1, "[::1]:49152", "[2001:db8::7]:6379"),
        (7, 10, 1, "127.0.0.1:49153", "10.0.0.7:6379"),
    ]
    big = HEAD + "   0: 7F000001:1F90 0A000007:18EB 01 " + REST.format(1)
    assert _peer(parse_net_tcp(big, "big")[0]) == "10.0.0.7:6379"


def _peer(socket):
    return address_text(socket.peer, socket.peer_port)


def test_queues_timer_and_owner():
    """Queues in bytes, the timer in milliseconds; a record without what /proc does not tell."""
    line = "   9: 0100007F:1F90 0700000A:18EB 08 0000A000:00000400 01:00000014 00000003  1000        0 77 2 0 21 4 0 1 -1\n"
    found = parse_net_tcp(HEAD + line, "little")[0]
    assert (found.send_queue, found.recv_queue, found.uid, found.inode) == (0xA000, 0x400, 1000, 77)
    assert (found.timer, found.expires_ms, found.retransmits) == (1, 200, 3)
    assert found.cookie is None
    assert found.info is None


def test_other_lines_are_left_out():
    """Cut off, not hexadecimal, an address of another length."""
    for line in (
        "   0: 0100007F:1F90 07",
        "   0: 0100007F:1F90 0700000G:18EB 01 " + REST.format(1),
        "\x00",
        "a " * 30,
        "   0: 0100007F:1F90 0700000A:18EB 7F " + REST.format(1),
        "   0: 0100007F:1F90 0700000A:118EB 01 " + REST.format(1),
    ):
        assert parse_net_tcp(HEAD + line) == []
    assert parse_net_tcp("") == []
