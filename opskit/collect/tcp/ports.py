"""Local ports that connections take of net.ipv4.ip_local_port_range. Pure.

connect(2) needs a port that no connection from the same address to the same address and port has, in any state (TIME-WAIT too), and
that no socket is bound to (net/ipv4/inet_hashtables.c, __inet_hash_connect). So they run out for each destination on its own. bind(2)
of port 0 needs a port that nobody uses.
"""

from __future__ import annotations

from heapq import nlargest
from typing import TYPE_CHECKING

from opskit.collect.tcp.host_facts import Destination
from opskit.proc.tcp_sockets import LISTEN, SYN_RECV, TIME_WAIT
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from opskit.proc.tcp_sockets import Socket

_MOST = 20  # destinations
_WITHOUT_PORT = (SYN_RECV, 12)  # 12: TCP_NEW_SYN_RECV
_TIME_WAIT_MS, _YOUNG_MS = 60_000, 1000  # include/net/tcp.h, TCP_TIMEWAIT_LEN; net.ipv4.tcp_tw_reuse_delay


class PortUse(NamedTuple):
    """`taken`: ports of the range that no connection gets; `used`: others with a connection to any peer that is not in TIME-WAIT."""

    taken: int
    used: int
    destinations: tuple[Destination, ...]


def port_use(sockets: Iterable[Socket], low: int, high: int, reserved: Collection[int] = ()) -> PortUse:
    """The ports of the range low to high that the sockets of a network namespace use."""
    of_peer: dict[tuple[bytes, bytes, int, int], dict[int, Socket]] = {}
    used, listened = set(), set()
    for each in sockets:
        port, state = each.local_port, each.state
        if not low <= port <= high or state in _WITHOUT_PORT:
            continue
        if state == LISTEN:
            listened.add(port)
            continue
        of_peer.setdefault((each.local, each.peer, each.peer_port, each.interface), {})[port] = each
        if state != TIME_WAIT:
            used.add(port)
    taken = listened.union(port for port in reserved if low <= port <= high)
    largest = nlargest(_MOST, of_peer.items(), key=lambda one: len(one[1]))
    counted = [_destination(key, ports, taken) for key, ports in largest]
    named = sorted((one for one in counted if one.used), key=lambda one: (-one.used, one.peer, one.port, one.local))
    return PortUse(len(taken), len(used - taken), tuple(named))


def _destination(key: tuple[bytes, bytes, int, int], ports: dict[int, Socket], taken: Collection[int]) -> Destination:
    local, peer, port, _ = key
    states: dict[int, int] = {}
    young = 0
    for number, socket in ports.items():
        if number not in taken:
            states[socket.state] = states.get(socket.state, 0) + 1
            young += socket.state == TIME_WAIT and socket.expires_ms > _TIME_WAIT_MS - _YOUNG_MS
    return Destination(local, peer, port, sum(states.values()), states, young)
