"""Hand-made facts about the host's part in TCP."""

from __future__ import annotations

import socket

from opskit.collect.tcp.facts import Closing, Facts, Listener, Owner, Request, Sample, Space, Watched
from opskit.collect.tcp.host_facts import HostFacts
from opskit.proc.tcp_sockets import ESTABLISHED, LISTEN, STATES, Socket, SocketMemory, TcpInfo

SERVER = Owner(4242, 77, "java", 9, is_jvm=True)
ANY = ".".join("0000")
CLIENT = Owner(5151, 88, "python3", 7)


def address(text: str) -> bytes:
    """4 or 16 bytes."""
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def tcp_info(**values) -> TcpInfo:
    """0 for what is not given."""
    return TcpInfo(**{**dict.fromkeys(TcpInfo._fields, 0), **values})


def tcp_socket(
    state=ESTABLISHED, local="10.0.0.1", local_port=40000, peer="10.0.0.7", peer_port=5432, **values
) -> Socket:
    """A socket of sock_diag."""
    family = socket.AF_INET6 if ":" in peer else socket.AF_INET
    made = Socket(
        family, state, address(local), local_port, address(peer), peer_port, 0, 0, 1000, 4711, cookie=b"12345678"
    )
    return made._replace(**values)


def listener(waiting=(0, 0), backlog=128, most=0, drops=(0, 0), owner=SERVER, local_port=8080, **values) -> Listener:
    """A listening socket at both ends of a window."""
    first, last = (
        tcp_socket(
            LISTEN, ANY, local_port, ANY, 0, recv_queue=queue, send_queue=backlog, memory=SocketMemory(0, 0, 0, 0, drop),
            **values,
        )
        for queue, drop in zip(waiting, drops)
    )  # fmt: skip
    return Listener(first, last, owner, max(most, *waiting))


def closing(
    number=300,
    lasting=None,
    oldest_ms=5000,
    inbound=True,
    first=None,
    host="10.0.0.9",
    port=8080,
    owner=SERVER,
    **values,
):
    """Connections in CLOSE_WAIT."""
    values = {"fds": tuple(range(10, 10 + number)), **values}
    return Closing(
        owner, address(host), port, inbound, number if first is None else first, number,
        number if lasting is None else lasting, oldest_ms, **values,
    )  # fmt: skip


def watched(last: Socket, first: Socket | None = None, owner=CLIENT, inbound=False, elapsed_s=2.0) -> Watched:
    """A connection; without `first` nothing changed, and it was not sampled."""
    samples = () if first is None else (Sample(0.0, 0, 0, 0, 0, 0, None, 0, 0),)
    return Watched(last if first is None else first, last, elapsed_s, inbound, owner, samples)


def host_facts(grown=None, before=None, **values) -> HostFacts:
    """`grown`: counters and by how much in the window; `before`: what they were."""
    before, grown = dict(before or {}), dict(grown or {})
    first = {**dict.fromkeys(grown, 0), **before}
    made = HostFacts(
        first=first, last={name: number + grown.get(name, 0) for name, number in first.items()},
        sockstat={"TCP.orphan": 3, "TCP.tw": 30_000, "TCP.mem": 800}, ports=(32768, 60999, 0), ports_used=900, destinations=(),
        tcp_mem_pages=(287901, 383868, 575802), max_orphans=131072, max_time_wait=131072, conntrack=(2000, 262144),
        sysctls={
            "net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_wmem": "4096 16384 4194304", "net.ipv4.tcp_tw_reuse": "2",
            "net.ipv4.tcp_syncookies": "1", "net.ipv4.tcp_timestamps": "1", "net.core.somaxconn": "4096",
        },
        uptime_s=1e6,
    )  # fmt: skip
    return made._replace(**values)


def tcp_facts(host=None, connections=(), listeners=(), closing=(), request=None, **values) -> Facts:
    """Two seconds of one network namespace."""
    space = Space("net:[4026531840]", "sock_diag", {STATES.index("ESTAB"): 20}, host or host_facts())
    made = Facts(request or Request(), 2.0, tuple(connections), tuple(listeners), tuple(closing), (space,))
    return made._replace(**values)
