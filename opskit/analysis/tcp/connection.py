"""The verdict of one connection: the first rule that fits, the worst first. Pure."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from opskit.analysis.tcp import result as verdicts
from opskit.analysis.tcp.result import Judged, Rates
from opskit.analysis.tcp.shares import FEWEST_LOOKS, shares
from opskit.analysis.tcp.window import fills_our_window, is_idle, is_same_machine, looks, min_rtt_us, window_of
from opskit.proc.tcp_sockets import ESTABLISHED, SYN_SENT
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.analysis.tcp.result import Shares
    from opskit.analysis.tcp.window import Window
    from opskit.collect.tcp.facts import Sample, Watched
    from opskit.proc.tcp_sockets import Socket, TcpInfo

_UNREAD_BYTES = 16 << 10  # a reader that keeps up has less in its queue most of the time
_MOST = 0.5
_READ_LATE_S, _FILLED = 0.1, 0.9  # a queue that is short now and then, but seldom empty: the share of the looks
_LATE_S, _SENT_LATE_S = 0.03, 0.1  # data that waits shorter than this for its reader holds nobody up
_NARROW = 0.2  # of the looks, or of the busy time
_SMALLER, _SHRUNK = 0.75, 0.1  # than it was; of the looks
_STOPPED_S = 1.0
_HALF, _MOSTLY = 0.5, 0.8  # of the peer's window, each round trip
LOSS, FEWEST_RESENT = 0.01, 3  # share; segments
_BUSY_AT_ALL, _BUSY = 0.1, 0.5
_SNDBUF = 0.3
_NEAR_US, _QUEUED_US, _QUEUED = 1000, 5000, 2.0
_MANY_SEGMENTS = 20
_UNANSWERED, _STUCK = 3, 2  # retransmissions of the same segment
_FULL = 0.75  # of the largest segment: data of smaller ones alone has arrived
_MESSAGE_BYTES, _MESSAGES = 64, 3
_RETRANSMIT, _WINDOW_PROBE = 1, 4  # timers
_STREAM, _STREAM_SEGMENTS, _FLOWING, _FLOWING_MS, _TICK_MS = 20, 10, 0.8, 25, 10


class Evidence(NamedTuple):
    """What the rules look at. Shares are of the looks; `seen`: whether there were two looks with the kernel's counters.

    `unread`: a long receive queue; `unsent`: data that had to wait before it could leave; `full`: data waited, and as much as the peer's
    window holds was on its way; `closed`: data waited, and that window was 0.
    `min_rtt_us`: the least to this peer.
    """

    connection: Watched
    looks: Sequence[Sample]
    window: Window | None
    unread: float
    unsent: float
    full: float
    closed: float
    min_rtt_us: int | None

    @property
    def last(self) -> Socket:
        """The socket at the end."""
        return self.connection.last

    @property
    def info(self) -> TcpInfo | None:
        """Its tcp_info at the end."""
        return self.connection.last.info

    @property
    def sends_mostly(self) -> bool:
        """Whether data was on its way for more than half of the time, and more waited to be sent."""
        return (self.window is not None and (self.window.busy or 0) > _BUSY) and self.unsent > _MOST


def judge_connection(watched: Watched, least_rtt_us: int | None = None) -> Judged:
    """Its verdict, with the numbers. `least_rtt_us`: of all connections to this peer, where that is known."""
    sampled = bool(watched.samples)
    if is_idle(watched):
        return Judged(watched, verdicts.IDLE, _rates(watched, None), None, sampled)
    evidence = evidence_of(watched, least_rtt_us)
    verdict = next((verdict for verdict, fits in _RULES if fits(evidence)), verdicts.UNKNOWN)
    taken = None
    if verdict == verdicts.REQUESTS and len(evidence.looks) >= FEWEST_LOOKS:
        taken = shares_of(evidence)
    return Judged(watched, verdict, _rates(watched, evidence.window), taken, sampled)


def evidence_of(watched: Watched, least_rtt_us: int | None = None) -> Evidence:
    """What the rules look at."""
    seen, info = looks(watched), watched.last.info
    mss = info.snd_mss if info is not None else 0
    own_us = min_rtt_us(info)
    known = [rtt for rtt in (own_us, least_rtt_us) if rtt]
    total = max(len(seen), 1)
    unread = unsent = full = closed = 0
    for look in seen:
        unread += look.recv_queue >= max(_UNREAD_BYTES, look.rcv_ssthresh / 2)
        waiting, window = look.send_queue, look.snd_wnd
        if waiting and info is not None:
            on_the_way = look.unacked * mss
            closed += window == 0
            unsent += waiting > on_the_way
            full += waiting > on_the_way and window is not None and window < on_the_way + mss
    return Evidence(
        watched, seen, window_of(watched), unread / total, unsent / total, full / total, closed / total,
        min(known) if known else None,
    )  # fmt: skip


def shares_of(evidence: Evidence) -> Shares | None:
    """Who takes the time, whatever the number of looks."""
    window, info = evidence.window, evidence.info
    if window is None or info is None:
        return None
    return shares(evidence.looks, window, info, evidence.min_rtt_us)


def _waits_s(queues: Sequence[int], per_s: float | None) -> float | None:
    """How long data of a queue waits at this pace; None: nothing moves."""
    return sum(queues) / len(queues) / per_s if per_s else None


def _reads_late(it: Evidence) -> bool:
    """Much waits for this application, and longer than a moment; or all that waits has waited since before the window."""
    window = it.window
    if window is None or window.read is None:
        queues = {look.recv_queue for look in it.looks}
        return it.unread > _MOST and len(it.looks) > 1 and len(queues) == 1 and it.connection.elapsed_s >= _STOPPED_S
    late_s = _waits_s([look.recv_queue for look in it.looks], window.per_s(window.read))
    if it.unread > _MOST or _is_never_empty(it):
        return late_s is None or late_s >= _LATE_S
    if late_s is not None and late_s >= _READ_LATE_S and _is_seldom_empty(it):
        return True
    stopped = not window.read and window.elapsed_s >= _STOPPED_S and all(look.recv_queue for look in it.looks)
    # A client may leave a goodbye of its server unread; a request has to be read.
    return stopped and it.connection.inbound and it.last.state == ESTABLISHED


def _is_never_empty(it: Evidence) -> bool:
    """A reader that keeps up takes all that is there, now and then."""
    queues = sorted(look.recv_queue for look in it.looks)
    return len(queues) >= FEWEST_LOOKS and queues[len(queues) // 10] >= max(
        _UNREAD_BYTES, sum(queues) / len(queues) / 2
    )


def _is_seldom_empty(it: Evidence) -> bool:
    """A slow reader on a line with large segments: the queue falls to nothing, and at once the next window full arrives."""
    filled = sum(look.recv_queue > 0 for look in it.looks)
    mean = sum(look.recv_queue for look in it.looks) / max(len(it.looks), 1)
    return len(it.looks) >= FEWEST_LOOKS and filled >= _FILLED * len(it.looks) and mean >= _UNREAD_BYTES / 4


def _windows(it: Evidence) -> Sequence[int]:
    """The peer's receive window at each look."""
    return [look.snd_wnd for look in it.looks if look.snd_wnd is not None]


def _shrinks(it: Evidence) -> bool:
    """The peer's window becomes smaller again and again: what has arrived there is not read."""
    windows = _windows(it)
    small = sum(window <= _SMALLER * most for window, most in zip(windows, accumulate(windows, max)))
    return len(windows) >= FEWEST_LOOKS and small >= _SHRUNK * len(windows)


def _peer_reads_late(it: Evidence) -> bool:
    """The peer's window was full most of the time that data was on its way, and data waits here longer than a moment."""
    window = it.window
    if it.last.state == SYN_SENT:  # it has no window yet
        return False
    if window is None or window.acked is None:
        return it.connection.first.timer == it.last.timer == _WINDOW_PROBE and it.last.send_queue > 0
    limited = max(window.rwnd_limited or 0, it.full)
    is_limited = limited > _MOST or (limited > _NARROW and it.sends_mostly and _shrinks(it))
    if it.closed <= _MOST and not ((window.busy or 0) > _BUSY_AT_ALL and is_limited):
        return False
    late_s = _waits_s([look.send_queue for look in it.looks], window.per_s(window.acked))
    return (late_s is None or late_s >= _SENT_LATE_S) and not _fills_its_window(it)


def _fills_its_window(it: Evidence) -> bool:
    """The peer's window never closes, and as much as it holds arrives every round trip: the window is smaller than the path."""
    window, info = it.window, it.info
    if window is None or info is None or window.acked is None or (it.min_rtt_us or 0) < _NEAR_US:
        return False
    windows = sorted(_windows(it))
    if not windows or windows[len(windows) // 10] < max(2 * info.snd_mss, windows[-1] / 2):
        return False
    if (window.busy or 0) <= _BUSY:
        return False
    usual, in_flight = windows[len(windows) // 2], window.acked / window.elapsed_s * _rtt_us(it) / 1e6
    return in_flight >= usual * (_HALF if max(window.rwnd_limited or 0, it.full) > _MOST else _MOSTLY)


def _is_unanswered(it: Evidence) -> bool:
    """One segment is sent again and again, and nothing is acknowledged."""
    if it.last.state == SYN_SENT:
        return it.last.retransmits > 0 or (it.info is not None and it.info.retransmits > 0)
    return _stuck(it, _UNANSWERED)


def _stuck(it: Evidence, times: int) -> bool:
    info, window = it.info, it.window
    if info is None:
        return it.last.timer == _RETRANSMIT and it.last.retransmits >= times and it.last.send_queue > 0
    return info.retransmits >= times and info.unacked > 0 and not (window and window.acked)


def _loses_full_segments(it: Evidence) -> bool:
    """A full segment is stuck, and smaller ones arrive: something on the path drops it without telling (MTU black hole)."""
    info, window = it.info, it.window
    if info is None or not _stuck(it, _STUCK) or it.last.send_queue < info.snd_mss or it.last.state == SYN_SENT:
        return False
    if info.sacked or (window is not None and window.received):
        return True
    if info.bytes_acked is None or info.data_segs_out is None or info.retransmits < _UNANSWERED:
        return False
    arrived = info.data_segs_out - info.total_retrans - info.unacked
    is_alive = info.bytes_acked > 1 or bool(info.bytes_received)  # a SYN counts as one byte
    return is_alive and info.bytes_acked <= _FULL * info.snd_mss * max(arrived, 1)


def _loses(it: Evidence) -> bool:
    window = it.window
    return window is not None and (window.loss or 0) > LOSS and (window.resent_segments or 0) >= FEWEST_RESENT


def _fills_our_window(it: Evidence) -> bool:
    """A request may be answered in bursts: only of data that flows one way."""
    return fills_our_window(it.connection, _NEAR_US) and _flows_in(it)


def _flows_in(it: Evidence) -> bool:
    """Whether data comes, and none of ours that asks for it."""
    window = it.window
    return window is not None and (window.received or 0) > _STREAM * (window.acked or 0) and not _asks_and_answers(it)


def _rtt_us(it: Evidence) -> float:
    return sum(look.rtt_us for look in it.looks) / len(it.looks)


def _waits_for_space(it: Evidence) -> bool:
    window = it.window
    return window is not None and (window.busy or 0) > _BUSY and (window.sndbuf_limited or 0) > _SNDBUF


def _is_slowed(it: Evidence) -> bool:
    if it.min_rtt_us is None or is_same_machine(it.min_rtt_us):
        return False
    rtt = _rtt_us(it)
    return rtt > _QUEUED * it.min_rtt_us and rtt - it.min_rtt_us > _QUEUED_US


def _queues(it: Evidence) -> bool:
    """Data waits on the path, and not for a peer whose window is full again and again."""
    limited = 0.0 if it.window is None else it.window.rwnd_limited or 0.0
    waits_there = max(limited, it.full) > _NARROW
    return _is_slowed(it) and not waits_there and (it.sends_mostly or _waits_for_space(it))


def _fills_its_buffer(it: Evidence) -> bool:
    """The writer waited for space in its send buffer while all of that was on its way; near by this is no matter of the buffer.

    Where much is on its way and waits in a queue, a larger buffer would only make that longer. Little may wait for a late acknowledgement.
    """
    is_far = (it.min_rtt_us or _rtt_us(it)) >= _NEAR_US
    in_flight = sum(look.unacked for look in it.looks) / len(it.looks)
    return is_far and _waits_for_space(it) and not (in_flight >= _MANY_SEGMENTS and _is_slowed(it))


def _fills_the_line(it: Evidence) -> bool:
    """Also where a fast reader or writer, here or there, sets the pace: then the machines do."""
    window = it.window
    if window is None or not (window.acked or window.received):
        return False
    limited = max(window.rwnd_limited or 0, window.sndbuf_limited or 0) > _MOST and (window.busy or 0) > _BUSY
    return it.sends_mostly or limited or it.unread > _MOST


def _asks_and_answers(it: Evidence) -> bool:
    window = it.window
    if window is None or not window.acked or not window.received:
        return False
    segments = sorted((window.data_in or 0, window.data_out or 0))
    if min(window.acked, window.received) <= _MESSAGE_BYTES and segments[1] > _MESSAGES * segments[0]:
        return False
    return not (_streams(it, outwards=True) or _streams(it, outwards=False))


def _streams(it: Evidence, *, outwards: bool) -> bool:
    """Whether data flows one way without a pause, also where nothing was said the other way, which only confirms it."""
    window = it.window
    if window is None or None in (window.data_in, window.data_out):
        return False
    much, little = (window.acked or 0, window.received or 0) if outwards else (window.received or 0, window.acked or 0)
    segments, few = (window.data_out or 0, window.data_in or 0) if outwards else (window.data_in or 0, window.data_out or 0)  # fmt: skip
    if much < _STREAM * little or segments < _STREAM_SEGMENTS * few:
        return False
    ages = [(look.last_data_sent_ms, look.last_data_recv_ms) for look in it.looks]
    flowing = [(sent if outwards else received, received if outwards else sent) for sent, received in ages]
    unasked = sum(age <= _FLOWING_MS and word > age + _TICK_MS for age, word in flowing)
    return len(ages) >= FEWEST_LOOKS and unasked >= _FLOWING * len(ages)


def _writes_seldom(it: Evidence) -> bool:
    window = it.window
    return window is not None and (window.acked or 0) > (window.received or 0)


def _receives(it: Evidence) -> bool:
    return it.window is not None and bool(it.window.received)


def _rests(it: Evidence) -> bool:
    """Nothing moved, and nothing is on its way."""
    window = it.window
    return window is not None and window.acked == window.received == 0 and not it.last.send_queue


_RULES: Sequence[tuple[str, Callable[[Evidence], bool]]] = (
    (verdicts.READER_HERE, _reads_late),
    (verdicts.BLACK_HOLE, _loses_full_segments),
    (verdicts.UNANSWERED, _is_unanswered),
    (verdicts.READER_THERE, _peer_reads_late),
    (verdicts.LOSS, _loses),
    (verdicts.SEND_BUFFER, _fills_its_buffer),
    (verdicts.PEER_WINDOW, _fills_its_window),
    (verdicts.OWN_WINDOW, _fills_our_window),
    (verdicts.QUEUEING, _queues),
    (verdicts.BANDWIDTH, _fills_the_line),
    (verdicts.REQUESTS, _asks_and_answers),
    (verdicts.WRITER_HERE, _writes_seldom),
    (verdicts.WRITER_THERE, _receives),
    (verdicts.IDLE, _rests),
)


def _rates(watched: Watched, window: Window | None) -> Rates:
    info, last = watched.last.info, watched.last
    rtts = [sample.rtt_us for sample in watched.samples if sample.rtt_us] or ([info.rtt_us] if info is not None else [])
    least = min_rtt_us(info)
    queues = (last.recv_queue, last.send_queue)
    rtt_ms = sum(rtts) / len(rtts) / 1000 if rtts else None
    least_ms = None if least is None else least / 1000
    if window is None:
        moved = 0.0 if is_idle(watched) else None
        return Rates(moved, moved, None, None, rtt_ms, least_ms, moved, None, None, *queues)
    late = window.out_of_order / window.data_in if window.out_of_order is not None and window.data_in else None
    return Rates(
        window.per_s(window.acked), window.per_s(window.received), window.loss, late, rtt_ms, least_ms, window.busy,
        window.rwnd_limited, window.sndbuf_limited, *queues,
    )  # fmt: skip
