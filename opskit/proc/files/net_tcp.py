"""TCP sockets of a network namespace (Documentation/networking/proc_net_tcp.rst, net/ipv4/tcp_ipv4.c, net/ipv6/tcp_ipv6.c).

/proc/PID/net/tcp and tcp6; an address is 32-bit words in the byte order of the machine, each as hexadecimal digits:

      sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
       0: 0100007F:1F90 0700000A:18EB 01 00000000:00000000 00:00000000 00000000  1000        0 43219 1 0000…
"""

from __future__ import annotations

import sys
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from opskit.quantities import hexadecimal, integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

LISTEN = 0x0A
_WORDS, _LENGTHS = 10, (8, 32)


class Socket(NamedTuple):
    """A TCP socket. `host` is the peer's address: an IPv4-mapped one as IPv4, an IPv6 one in brackets."""

    inode: int
    state: int
    local_port: int
    host: str
    port: int


def parse_net_tcp(text: str, order: str = sys.byteorder) -> list[Socket]:
    """The sockets; lines of another form are left out."""
    return [*_sockets(text, order)]


def _sockets(text: str, order: str) -> Iterator[Socket]:
    for line in text.split("\n")[1:]:
        words = line.split(None, _WORDS)
        if len(words) < _WORDS:
            continue
        local, peer = words[1].rpartition(":")[2], words[2].partition(":")
        local_port, port, state, inode = (
            hexadecimal(local),
            hexadecimal(peer[2]),
            hexadecimal(words[3]),
            integer(words[9]),
        )
        host = host_of(peer[0], order)
        if host is not None and None not in (local_port, port, state, inode):
            yield Socket(inode or 0, state or 0, local_port or 0, host, port or 0)


def host_of(digits: str, order: str = sys.byteorder) -> str | None:
    """The address in the hexadecimal digits of these files, an IPv4-mapped one as IPv4; None: not an address."""
    if len(digits) not in _LENGTHS or hexadecimal(digits) is None:
        return None
    step = -1 if order == "little" else 1
    packed = b"".join(bytes.fromhex(digits[at : at + 8])[::step] for at in range(0, len(digits), 8))
    address = ip_address(packed)
    if isinstance(address, IPv6Address):
        return f"[{address}]" if address.ipv4_mapped is None else str(address.ipv4_mapped)
    return str(address)
