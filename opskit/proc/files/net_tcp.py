"""TCP sockets of a network namespace (Documentation/networking/proc_net_tcp.rst, net/ipv4/tcp_ipv4.c, net/ipv6/tcp_ipv6.c).

/proc/PID/net/tcp and tcp6; an address is 32-bit words in the byte order of the machine, each as hexadecimal digits:

      sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
       0: 0100007F:1F90 0700000A:18EB 01 00000000:00000000 00:00000000 00000000  1000        0 43219 1 0000…
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from opskit.proc.lines import lines_of
from opskit.proc.tcp_sockets import STATES, Socket
from opskit.quantities import hexadecimal, integer

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORDS, _LENGTHS = 10, (8, 32)
_IPV4, _IPV6 = 2, 10
_MAPPED = bytes(10) + b"\xff\xff"
_MS_A_TICK = 10  # USER_HZ is 100 in the kernel's files


def parse_net_tcp(text: str, order: str = sys.byteorder) -> list[Socket]:
    """The sockets; lines of another form are left out. The backlog of a listening one (`send_queue`) is unknown here: 0."""
    return [*_sockets(text, order)]


def _sockets(text: str, order: str) -> Iterator[Socket]:
    for line in lines_of(text)[1:]:
        words = line.split(None, _WORDS)
        if len(words) < _WORDS:
            continue
        local, peer, queues, timer = (words[place].partition(":") for place in (1, 2, 4, 5))
        numbers = [
            *map(hexadecimal, (local[2], peer[2], words[3], queues[0], queues[2], timer[0], timer[2], words[6])),
            integer(words[7]), integer(words[9]),
        ]  # fmt: skip
        ours, theirs = packed_address(local[0], order), packed_address(peer[0], order)
        known = [number for number in numbers if number is not None]
        if ours is None or theirs is None or len(known) < len(numbers):
            continue
        local_port, peer_port, state, send, receive, kind, ticks, retransmits, uid, inode = known
        if 0 < state < len(STATES) and max(local_port, peer_port) < 1 << 16:
            yield Socket(
                _IPV4 if len(local[0]) == _LENGTHS[0] else _IPV6, state, ours, local_port, theirs, peer_port,
                receive, send, uid, inode, kind, ticks * _MS_A_TICK, retransmits,
            )  # fmt: skip


def packed_address(digits: str, order: str = sys.byteorder) -> bytes | None:
    """An address packed: 4 bytes, also of an IPv4-mapped one, or 16."""
    if len(digits) not in _LENGTHS or hexadecimal(digits) is None:
        return None
    step = -1 if order == "little" else 1
    packed = b"".join(bytes.fromhex(digits[at : at + 8])[::step] for at in range(0, len(digits), 8))
    return packed.removeprefix(_MAPPED)
