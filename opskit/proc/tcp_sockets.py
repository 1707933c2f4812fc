"""A TCP socket as the kernel reports it: by netlink (sock_diag(7), struct inet_diag_msg and tcp_info), or by /proc/PID/net/tcp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# include/net/tcp_states.h; the position is the number of the state.
STATES: Sequence[str] = (
    "", "ESTAB", "SYN-SENT", "SYN-RECV", "FIN-WAIT-1", "FIN-WAIT-2", "TIME-WAIT", "CLOSE", "CLOSE-WAIT", "LAST-ACK",
    "LISTEN", "CLOSING", "NEW-SYN-RECV",
)  # fmt: skip
ESTABLISHED, SYN_SENT, SYN_RECV, FIN_WAIT_1, FIN_WAIT_2, TIME_WAIT, CLOSE, CLOSE_WAIT, LAST_ACK, LISTEN, CLOSING = (
    range(1, 12)
)


class TcpInfo(NamedTuple):
    """struct tcp_info (include/uapi/linux/tcp.h), as far as opskit reads it. None: this kernel's record is shorter.

    Fields by the kernel's names without `tcpi_`, times with their unit. Byte and segment counts are totals of the connection.
    """

    retransmits: int  # of the segment that is not acknowledged now
    backoff: int
    rto_us: int
    snd_mss: int
    rcv_mss: int
    unacked: int
    lost: int
    last_data_sent_ms: int
    last_data_recv_ms: int
    last_ack_recv_ms: int
    pmtu: int
    rcv_ssthresh: int
    rtt_us: int
    rttvar_us: int
    snd_cwnd: int
    advmss: int
    rcv_space: int
    total_retrans: int
    bytes_acked: int | None = None
    bytes_received: int | None = None
    segs_out: int | None = None
    segs_in: int | None = None
    notsent_bytes: int | None = None
    min_rtt_us: int | None = None
    data_segs_in: int | None = None
    data_segs_out: int | None = None
    delivery_rate: int | None = None  # bytes a second
    busy_us: int | None = None
    rwnd_limited_us: int | None = None
    sndbuf_limited_us: int | None = None
    bytes_sent: int | None = None
    bytes_retrans: int | None = None
    rcv_ooopack: int | None = None
    snd_wnd: int | None = None
    sacked: int | None = None  # segments behind a hole, which the peer has
    dsack_dups: int | None = None  # segments sent again that the peer had already


class SocketMemory(NamedTuple):
    """INET_DIAG_SKMEMINFO: bytes of a socket's buffers. `receive_limit` and `send_limit`: SO_RCVBUF, SO_SNDBUF as the kernel counts."""

    receive_bytes: int
    receive_limit: int
    send_bytes: int
    send_limit: int
    drops: int | None = None


class Socket(NamedTuple):
    """One TCP socket. Addresses are packed: 4 bytes, also of an IPv4-mapped one, or 16; host_text() prints one.

    `recv_queue` and `send_queue`: bytes; of a listening socket the connections that wait for accept(2), and the backlog
    (0 where `cookie` is None: unknown). `cookie`: identifies the socket until the machine stops; None in /proc. `inode` 0: no process has it (TIME-WAIT, orphans).
    `timer`: 0 none, 1 retransmit, 2 keep-alive, 3 TIME-WAIT, 4 zero window probe; `expires_ms`: until then.
    """

    family: int
    state: int
    local: bytes
    local_port: int
    peer: bytes
    peer_port: int
    recv_queue: int
    send_queue: int
    uid: int
    inode: int
    timer: int = 0
    expires_ms: int = 0
    retransmits: int = 0
    interface: int = 0
    cookie: bytes | None = None
    info: TcpInfo | None = None
    memory: SocketMemory | None = None


def backlog(listening: Socket) -> int | None:
    """How many connections may wait for accept(2); None: /proc/net/tcp does not show it."""
    return None if listening.cookie is None else listening.send_queue


def host_text(packed: bytes) -> str:
    """`10.0.0.7`, `[2001:db8::7]`."""
    if len(packed) == 4:
        return ".".join(map(str, packed))
    from ipaddress import ip_address

    return f"[{ip_address(packed)}]"


def address_text(packed: bytes, port: int) -> str:
    """`10.0.0.7:5432`, `[2001:db8::7]:5432`."""
    return f"{host_text(packed)}:{port}"
