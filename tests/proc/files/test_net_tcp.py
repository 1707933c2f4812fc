"""TCP sockets: the kernel's words, and damaged ones."""

from __future__ import annotations

from opskit.proc.files.net_tcp import LISTEN, Socket, parse_net_tcp

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
REST = "00000000:00000000 00:00000000 00000000  1000        0 {} 1 0000000000000000 100 0 0 10 0\n"


def test_addresses_of_both_families():
    """IPv4; IPv6 in brackets; an IPv4-mapped address as IPv4."""
    text = HEAD + "   0: 0100007F:1F90 0700000A:18EB 01 " + REST.format(43219)
    text += "   1: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A " + REST.format(5)
    text += "   2: 00000000000000000000000001000000:C000 B80D0120000000000000000007000000:18EB 01 " + REST.format(6)
    text += "   3: 0000000000000000FFFF00000100007F:C001 0000000000000000FFFF00000700000A:18EB 01 " + REST.format(7)
    assert parse_net_tcp(text, "little") == [
        Socket(43219, 1, 8080, "10.0.0.7", 6379),
        Socket(5, LISTEN, 8080, "[::]", 0),
        Socket(6, 1, 49152, "[2001:db8::7]", 6379),
        Socket(7, 1, 49153, "10.0.0.7", 6379),
    ]
    assert parse_net_tcp(HEAD + "   0: 7F000001:1F90 0A000007:18EB 01 " + REST.format(1), "big")[0].host == "10.0.0.7"


def test_other_lines_are_left_out():
    """Cut off, not hexadecimal, an address of another length."""
    for line in ("   0: 0100007F:1F90 07", "   0: 0100007F:1F90 0700000G:18EB 01 " + REST.format(1), "\x00", "a " * 30):
        assert parse_net_tcp(HEAD + line) == []
    assert parse_net_tcp("") == []
