"""What is read of a network namespace and its machine beside the connections themselves. Counts; None: unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Destination(NamedTuple):
    """Connections to one peer's port from one local address: each takes a port of ip_local_port_range. `states`: how many in each."""

    local: bytes
    peer: bytes
    port: int
    used: int
    states: Mapping[int, int]


class HostFacts(NamedTuple):
    """Counters (`TcpExt.ListenOverflows`, `Tcp.RetransSegs`) at both ends of the window, and limits.

    `ports`: net.ipv4.ip_local_port_range, and how many of them no connection gets: reserved, or listened on. `ports_used`: of the
    others, by a socket to any peer. `destinations`: those with the most ports used.
    `tcp_mem_pages`: net.ipv4.tcp_mem (low, pressure, high). `conntrack`: entries and the limit. `uptime_s`: of the machine.
    """

    first: Mapping[str, int]
    last: Mapping[str, int]
    sockstat: Mapping[str, int]  # `TCP.orphan`, `TCP.mem`, `TCP.tw`, …
    ports: tuple[int, int, int] | None
    ports_used: int | None
    destinations: tuple[Destination, ...]
    tcp_mem_pages: tuple[int, int, int] | None
    max_orphans: int | None
    max_time_wait: int | None
    conntrack: tuple[int, int] | None
    sysctls: Mapping[str, str]  # what the sentences name: net.core.somaxconn, net.ipv4.tcp_rmem, …
    uptime_s: float | None
