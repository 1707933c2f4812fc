"""Local ports that connections take of net.ipv4.ip_local_port_range. Pure.

connect(2) needs a port that no connection from the same address to the same address and port has, in any state (TIME-WAIT too), and
that no socket is bound to (net/ipv4/inet_hashtables.c, __inet_hash_connect). So they run out for each destination on its own. bind(2)
of port 0 needs a port that nobody uses.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import nlargest
from typing import TYPE_CHECKING

from opskit.collect.tcp.host_facts import Destination
from opskit.proc.inet_diag import parse_destination
from opskit.proc.tcp_sockets import ESTABLISHED, LISTEN, SYN_RECV, TIME_WAIT
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from opskit.proc.inet_diag import End

_MOST = 20  # destinations
_WITHOUT_PORT = (LISTEN, SYN_RECV, 12)  # 12: TCP_NEW_SYN_RECV
_TIME_WAIT_MS, _YOUNG_MS = 60_000, 1000  # include/net/tcp.h, TCP_TIMEWAIT_LEN; net.ipv4.tcp_tw_reuse_delay


class PortUse(NamedTuple):
    """`taken`: ports of the range that no connection gets; `used`: others with a connection to any peer that is not in TIME-WAIT."""

    taken: int
    used: int
    destinations: tuple[Destination, ...]


def port_use(ends: Iterable[End], low: int, high: int, reserved: Collection[int] = ()) -> PortUse:
    """The ports of the range low to high that the sockets of a network namespace use."""
    least, most = _bytes(low), _bytes(high)
    of_destination: defaultdict[bytes, dict[bytes, End]] = defaultdict(dict)
    used, taken = set(), {_bytes(port) for port in reserved if low <= port <= high}
    for end in ends:
        _, state, port, destination, _ = end
        if not least <= port <= most:
            continue
        if state != ESTABLISHED:  # most are
            if state == LISTEN:
                taken.add(port)
            if state in _WITHOUT_PORT:
                continue
        of_destination[destination][port] = end
        if state != TIME_WAIT:
            used.add(port)
    # A socket of IPv6 with a mapped address takes the port of IPv4.
    merged: dict[tuple[bytes, bytes, int, int], dict[bytes, End]] = {}
    for destination, ports in nlargest(_MOST, of_destination.items(), key=lambda one: len(one[1])):
        family = next(iter(ports.values()))[0]
        merged.setdefault(parse_destination(family, destination), {}).update(ports)
    counted = [_destination(key, ports, taken) for key, ports in merged.items()]
    named = sorted((one for one in counted if one.used), key=lambda one: (-one.used, one.peer, one.port, one.local))
    return PortUse(len(taken), len(used - taken), tuple(named))


def _bytes(port: int) -> bytes:
    return port.to_bytes(2, "big")


def _destination(key: tuple[bytes, bytes, int, int], ports: dict[bytes, End], taken: Collection[bytes]) -> Destination:
    local, peer, port, _ = key
    states: dict[int, int] = {}
    young = 0
    for number, (_, state, _, _, expires_ms) in ports.items():
        if number not in taken:
            states[state] = states.get(state, 0) + 1
            young += state == TIME_WAIT and expires_ms > _TIME_WAIT_MS - _YOUNG_MS
    return Destination(local, peer, port, sum(states.values()), states, young)
