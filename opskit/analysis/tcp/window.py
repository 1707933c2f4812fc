"""What one connection did between its two looks, by the differences of the kernel's counters. Pure."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from opskit.collect.tcp.facts import Sample
from opskit.proc.tcp_sockets import ESTABLISHED, TcpInfo
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.collect.tcp.facts import Watched
    from opskit.proc.tcp_sockets import Socket

_NO_RTT_US = 1 << 31  # tcp_min_rtt() is ~0 before the first measurement
_U32 = 1 << 32
_SAME_MACHINE_US = 25  # loopback and veth; through a switch it is more
_FILLED = 0.7


def _counters(*names: str) -> Callable[[TcpInfo], tuple[int | None, ...]]:
    found: Callable[[TcpInfo], tuple[int | None, ...]] = itemgetter(*map(TcpInfo._fields.index, names))
    return found


# A machine may have 100,000 busy connections: their counters are taken together.
_BYTES_AND_TIMES = _counters(
    "bytes_received", "bytes_acked", "bytes_sent", "bytes_retrans", "busy_us", "rwnd_limited_us", "sndbuf_limited_us"
)
_SEGMENTS = _counters(
    "data_segs_out", "total_retrans", "dsack_dups", "data_segs_in", "segs_in", "segs_out", "rcv_ooopack"
)


class Window(NamedTuple):
    """Differences over `elapsed_s`: bytes, segments, seconds. None: this kernel does not count it.

    `acked`: bytes of ours that the peer has acknowledged; `received`, `read`: bytes that came, and that this application took.
    `sent` and `resent`: bytes that left, with those that left again, and of these alone the ones that the peer lacked.
    `resent_segments`: the latter in segments. `exchanges`: segments with data in the direction that has fewer: at least the requests.
    """

    elapsed_s: float
    acked: int | None
    received: int | None
    read: int | None
    sent: int | None
    resent: float | None
    resent_segments: int | None
    data_out: int | None
    data_in: int | None
    segments_in: int | None
    segments_out: int | None
    out_of_order: int | None
    busy_s: float | None
    rwnd_s: float | None
    sndbuf_s: float | None

    @property
    def exchanges(self) -> int | None:
        """How many requests and responses there were at most."""
        return None if self.data_out is None or self.data_in is None else min(self.data_out, self.data_in)

    @property
    def pure_acks(self) -> int | None:
        """Segments without data that came."""
        return _others(self.segments_in, self.data_in)

    @property
    def own_pure_acks(self) -> int | None:
        """Segments without data that left."""
        return _others(self.segments_out, self.data_out)

    @property
    def loss(self) -> float | None:
        """The share of what was sent that had to be sent again."""
        if self.resent is None or not self.sent:
            return None
        return min(1.0, self.resent / self.sent)

    @property
    def busy(self) -> float | None:
        """The share of the time in which data was on its way or waited for that."""
        return _share(self.busy_s, self.elapsed_s)

    @property
    def rwnd_limited(self) -> float | None:
        """The share of the busy time in which the peer's window was full."""
        return _share(self.rwnd_s, self.busy_s)

    @property
    def sndbuf_limited(self) -> float | None:
        """The share of the busy time in which the send buffer was."""
        return _share(self.sndbuf_s, self.busy_s)

    def per_s(self, amount: float | None) -> float | None:
        """A rate."""
        return None if amount is None else amount / self.elapsed_s


def _others(segments: int | None, data: int | None) -> int | None:
    return None if segments is None or data is None else max(0, segments - data)


def _share(part: float | None, whole: float | None) -> float | None:
    if part is None or whole is None:
        return None
    return min(1.0, part / whole) if whole > 0 else 0.0


def window_of(watched: Watched) -> Window | None:
    """The differences; None where there were no two looks with counters."""
    first, last = watched.first.info, watched.last.info
    if first is None or last is None or watched.first is watched.last or watched.elapsed_s <= 0:
        return None

    received, acked, sent, resent, busy, rwnd, sndbuf = map(_increase, _BYTES_AND_TIMES(first), _BYTES_AND_TIMES(last))
    data_out, again, needless, data_in, segments_in, segments_out, late = map(_more, _SEGMENTS(first), _SEGMENTS(last))
    read = None if received is None else max(0, received - watched.last.recv_queue + watched.first.recv_queue)
    if again is not None and (wasted := min(again, needless or 0)):
        resent = None if resent is None else max(0, resent - wasted * last.snd_mss)
        again -= wasted
    if sent is None or resent is None:  # before Linux 4.19
        sent, resent = (data_out if data_out is not None else segments_out), again
    return Window(
        watched.elapsed_s, acked, received, read, sent, resent, again, data_out, data_in, segments_in, segments_out, late,
        None if busy is None else min(busy / 1e6, watched.elapsed_s), None if rwnd is None else rwnd / 1e6,
        None if sndbuf is None else sndbuf / 1e6,
    )  # fmt: skip


def _increase(before: int | None, after: int | None) -> int | None:
    """None also for a counter that went back: not the same connection, or a torn reading."""
    return None if before is None or after is None or after < before else after - before


def _more(before: int | None, after: int | None) -> int | None:
    """The increase of a counter of 32 bits."""
    return None if before is None or after is None else (after - before) % _U32


def min_rtt_us(info: TcpInfo | None) -> int | None:
    """The least round trip time of the last minutes; None: none was measured."""
    found = None if info is None else info.min_rtt_us
    return found if found and found < _NO_RTT_US else None


def is_same_machine(rtt_us: int | None) -> bool:
    """Whether a peer is so near that nothing on the path can queue: its late acknowledgements are those of its program."""
    return rtt_us is not None and rtt_us <= _SAME_MACHINE_US


def fills_our_window(watched: Watched, far_us: int) -> bool:
    """Whether as much as our receive buffer allows arrives each round trip: a larger one would make it faster.

    Not where the kernel still enlarges it, where it is not read, or where the peer is nearer than `far_us`.
    """
    info, window = watched.last.info, window_of(watched)
    was, memory, rtt_us = watched.first.memory, watched.last.memory, min_rtt_us(info)
    if info is None or window is None or not window.received or rtt_us is None or rtt_us < far_us:
        return False
    if was is None or memory is None or memory.receive_limit != was.receive_limit:
        return False
    in_flight = window.received / window.elapsed_s * rtt_us / 1e6
    return in_flight >= info.rcv_ssthresh * _FILLED and watched.last.recv_queue <= info.rcv_ssthresh / 2


def looks(watched: Watched) -> Sequence[Sample]:
    """The samples; of a connection that was read at both ends alone, these two."""
    if watched.samples:
        return watched.samples
    ends = (watched.first,) if watched.first is watched.last else (watched.first, watched.last)
    return [_look(socket, number * watched.elapsed_s) for number, socket in enumerate(ends)]


def _look(socket: Socket, at_s: float) -> Sample:
    info = socket.info
    if info is None:
        return Sample(at_s, socket.recv_queue, socket.send_queue, 0, 0, 0, None, 0, 0)
    return Sample(
        at_s, socket.recv_queue, socket.send_queue, info.last_data_sent_ms, info.last_data_recv_ms, info.rcv_ssthresh,
        info.snd_wnd, info.unacked, info.rtt_us,
    )  # fmt: skip


def is_idle(watched: Watched) -> bool:
    """Whether nothing moved and nothing waits: so are most connections of a large machine, and this is quickly seen."""
    first, last = watched.first.info, watched.last.info
    if first is None or last is None or last.bytes_acked is None or watched.first is watched.last:
        return False
    return (
        last.bytes_acked == first.bytes_acked
        and last.bytes_received == first.bytes_received
        and last.total_retrans == first.total_retrans
        and not watched.last.send_queue
        and watched.last.recv_queue <= (watched.last.state != ESTABLISHED)  # a FIN that was not read counts as a byte
    )
