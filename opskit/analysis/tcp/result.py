"""What `opskit tcp` concludes. Shares from 0 to 1; None: unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.analysis.finding import Finding
    from opskit.collect.tcp.facts import Closing, Facts, Listener, Watched

# The verdicts, the worst first.
READER_HERE = "application-does-not-read"
READER_THERE = "peer-does-not-read"
BLACK_HOLE = "mtu-black-hole"
UNANSWERED = "peer-does-not-answer"
LOSS = "network-loses"
QUEUEING = "queueing"
SEND_BUFFER = "send-buffer-too-small"
PEER_WINDOW = "peer-window-too-small"  # the peer reads at once, but its receive buffer is smaller than the path
OWN_WINDOW = "receive-buffer-too-small"  # the same of ours
BANDWIDTH = "bandwidth"
REQUESTS = "request-response"
WRITER_HERE = "application-does-not-write"  # one way: nothing to send most of the time
WRITER_THERE = "peer-does-not-write"
IDLE = "idle"
UNKNOWN = "unknown"
VERDICTS = (
    READER_HERE, READER_THERE, BLACK_HOLE, UNANSWERED, LOSS, QUEUEING, SEND_BUFFER, PEER_WINDOW, OWN_WINDOW, BANDWIDTH,
    REQUESTS, WRITER_HERE, WRITER_THERE, IDLE, UNKNOWN,
)  # fmt: skip


class Shares(NamedTuple):
    """Who takes the time of requests and responses; the sum is 1."""

    peer: float
    network: float
    here: float


class Rates(NamedTuple):
    """A connection, or a group's sums and means, over the window."""

    sent_bytes_s: float | None
    received_bytes_s: float | None
    loss: float | None  # bytes sent again, of all sent
    out_of_order: float | None  # of the segments received
    rtt_ms: float | None
    min_rtt_ms: float | None
    busy: float | None  # of the window, data was in flight
    rwnd_limited: float | None  # of that time
    sndbuf_limited: float | None
    recv_queue_bytes: int
    send_queue_bytes: int


class Judged(NamedTuple):
    """A connection with its verdict. `shares`: of request and response only. `sampled`: looked at 20 to 50 times a second."""

    connection: Watched
    verdict: str
    rates: Rates
    shares: Shares | None
    sampled: bool


class Group(NamedTuple):
    """Connections of one process (by command) with one peer's port, or with one peer to our port (`inbound`).

    `verdict`: of the connections that are not idle, the one that most of their traffic or waiting has; `judged`: its connections, the worst first.
    `verdicts`: how many connections have each; of many idle ones none is in `judged`. `space`: a network namespace's place in Facts.spaces.
    """

    command: str | None
    pids: tuple[int, ...]
    inbound: bool
    host: bytes
    port: int
    verdict: str
    verdicts: tuple[tuple[str, int], ...]
    rates: Rates
    shares: Shares | None
    judged: tuple[Judged, ...]
    space: int = 0

    @property
    def connections(self) -> int:
        """How many there are."""
        return sum(number for _, number in self.verdicts)


class Result(NamedTuple):
    """The answer; `groups` worst first."""

    facts: Facts
    groups: tuple[Group, ...]
    listeners: tuple[Listener, ...]  # the fullest first
    closing: tuple[Closing, ...]  # the most first
    findings: tuple[Finding, ...]
