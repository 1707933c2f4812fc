"""/proc/net/sockstat."""

from __future__ import annotations

from opskit.proc.files.sockstat import parse_socket_pages, parse_sockstat


def test_the_pages_of_buffers():
    """Of TCP and UDP; 0 where a kernel does not count them."""
    text = "sockets: used 290\nTCP: inuse 27 orphan 0 tw 12 alloc 31 mem 800\nUDP: inuse 5 mem 2\nUDPLITE: inuse 0\nRAW: inuse 0\nFRAG: inuse 0 memory 0\n"
    assert parse_socket_pages(text) == 802
    assert parse_socket_pages("TCP: inuse 27\nUDP: mem\nTCP: mem x\n") == parse_socket_pages("") == 0


def test_all_numbers():
    """By protocol and name; what is not a number is left out."""
    text = "sockets: used 290\nTCP: inuse 27 orphan 1 tw 12 alloc x mem 8\nUDP: inuse\n\n"
    assert parse_sockstat(text) == {"sockets.used": 290, "TCP.inuse": 27, "TCP.orphan": 1, "TCP.tw": 12, "TCP.mem": 8}
