"""Traffic of one connection, as the kernel would count it: what opskit reads of it, and what is true of it."""

from __future__ import annotations

import bisect
import random

from opskit.collect.tcp.facts import Owner, Sample, Watched
from opskit.proc.tcp_sockets import ESTABLISHED, Socket, TcpInfo

OWNER = Owner(4242, 77, "orders", 9)
NO_INFO = dict.fromkeys(TcpInfo._fields, 0)
MSS = 1448
HERE, PEER = bytes([10, 0, 0, 2]), bytes([10, 0, 0, 7])


def info(**values):
    """A tcp_info; what is not given is 0, or as on a quiet line."""
    usual = {"snd_mss": MSS, "rcv_mss": MSS, "snd_cwnd": 10, "rtt_us": 1000, "min_rtt_us": 1000, "rto_us": 204_000,
             "rcv_ssthresh": 65_535, "snd_wnd": 65_535}  # fmt: skip
    return TcpInfo(**{**NO_INFO, **usual, **values})


def tcp_socket(counted, **values):
    """An established connection from 10.0.0.2:40000 to 10.0.0.7:5432, owned by nobody in particular."""
    usual = {"family": 2, "state": ESTABLISHED, "local": HERE, "local_port": 40_000, "peer": PEER, "peer_port": 5432,
             "recv_queue": 0, "send_queue": 0, "uid": 0, "inode": 7}  # fmt: skip
    return Socket(**{**usual, **values}, info=counted)


def watched(first=None, last=None, *, seconds=2.0, inbound=False, owner=OWNER, samples=(), **of_socket):
    """A connection that had these counters at both ends of the window (dicts of tcp_info)."""
    before = None if first is None else tcp_socket(info(**first), **of_socket)
    return Watched(
        before or tcp_socket(info(), **of_socket), tcp_socket(info(**(last or {})), **of_socket), seconds, inbound,
        owner, tuple(samples),
    )  # fmt: skip


def steady(number=50, seconds=2.0, **values):
    """Samples that are all alike."""
    usual = {"recv_queue": 0, "send_queue": 0, "last_data_sent_ms": 0, "last_data_recv_ms": 0, "rcv_ssthresh": 65_535,
             "snd_wnd": 65_535, "unacked": 0, "rtt_us": 1000}  # fmt: skip
    return [Sample(seconds * place / (number - 1), **{**usual, **values}) for place in range(number)]


class Exchange:
    """Requests and responses of one segment each, one after the other. Times in ms: `rtt`, and what each application takes.

    `acks`: "at once"; "late": with the answer, or by a timer after 40 ms. `tick`: of the kernel's clock. `serves`: this side answers.
    """

    def __init__(self, *, rtt, peer, here, acks="at once", tick=4, serves=False, spread=0.0, seed=1):
        self.rtt, self.peer, self.here, self.tick = rtt, peer, here, tick
        self.acks, self.serves, self.spread = acks, serves, spread
        self._random = random.Random(seed)  # noqa: S311
        self.sent, self.came, self.acked = [], [], []  # ms

    def _varied(self, ms):
        return ms * self._random.uniform(1 - self.spread, 1 + self.spread)

    def _happen(self, until_ms):
        at = 0.0
        while at < until_ms:
            peer, here = self._varied(self.peer), self._varied(self.here)
            self.sent.append(at)
            self.came.append(at + self.rtt + peer)
            late = 0.0 if self.acks == "at once" else min(peer, 40.0)
            self.acked.append(at + self.rtt + late)
            at += self.rtt + peer + here

    def shares(self):
        """What is true: (peer, network, here)."""
        total = self.rtt + self.peer + self.here
        return self.peer / total, self.rtt / total, self.here / total

    def watched(self, *, seconds=2.0, per_s=50, begin_ms=3000.0, request=100, response=900, sampled=True):
        """What opskit reads of it over `seconds`."""
        self._happen(begin_ms + seconds * 1000 + 100)
        number = round(seconds * per_s)
        times = [
            begin_ms + seconds * 1000 * (place + self._random.uniform(0, 0.05)) / number for place in range(number + 1)
        ]
        ends = times[0], times[-1]
        sockets = [tcp_socket(self._info(at, request, response), send_queue=self._queue(at, request)) for at in ends]
        samples = [self._sample(at, times[0], request) for at in times] if sampled else ()
        return Watched(*sockets, (ends[1] - ends[0]) / 1000, self.serves, OWNER, tuple(samples))

    def _ticks(self, ms):
        return int(ms // self.tick) * self.tick

    def _last(self, events, at):
        place = bisect.bisect_right(events, at)
        return events[place - 1] if place else 0.0

    def _ages(self, at):
        now = self._ticks(at)
        return [now - self._ticks(self._last(events, at)) for events in (self.sent, self.came)]

    def _queue(self, at, request):
        return request if self._last(self.sent, at) > self._last(self.acked, at) else 0

    def _sample(self, at, begin, request):
        queue = self._queue(at, request)
        return Sample((at - begin) / 1000, 0, queue, *self._ages(at), 65_535, 65_535, bool(queue), int(self.rtt * 1000))

    def _info(self, at, request, response):
        busy = sum(
            self._ticks(min(end, at)) - self._ticks(begin) for begin, end in zip(self.sent, self.acked) if begin <= at
        )
        sent, came, acked = (bisect.bisect_right(events, at) for events in (self.sent, self.came, self.acked))
        pure = (
            acked
            if self.acks == "at once"
            else sum(end < answer - 0.001 for end, answer in zip(self.acked, self.came[:came]))
        )
        sent_ms, came_ms = self._ages(at)
        waited = self.acked[0] - self.sent[0]
        return info(
            bytes_acked=acked * request + 1, bytes_received=came * response, bytes_sent=sent * request, data_segs_out=sent,
            data_segs_in=came, segs_in=came + pure + 1, segs_out=sent + came, busy_us=int(busy * 1000),
            rtt_us=int(waited * 1000), min_rtt_us=int(self.rtt * 1000), last_data_sent_ms=sent_ms,
            last_data_recv_ms=came_ms, rto_us=int(self.rtt * 1000) + 200_000,
        )  # fmt: skip
