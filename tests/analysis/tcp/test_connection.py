"""The verdict of a connection: each rule, what it must not be taken for, and old kernels."""

from __future__ import annotations

import random

import pytest
from tcptraffic import MSS, Exchange, info, steady, tcp_socket, watched

from opskit.analysis.tcp import result as verdicts
from opskit.analysis.tcp.connection import judge_connection
from opskit.analysis.tcp.result import VERDICTS
from opskit.analysis.tcp.words import connection_answer
from opskit.collect.tcp.facts import Watched
from opskit.proc.tcp_sockets import CLOSE_WAIT, SYN_SENT, SocketMemory, TcpInfo

MIB = 1 << 20
OLD = dict.fromkeys(TcpInfo._field_defaults)  # a kernel that knows none of the later fields


def judged(*arguments, **values):
    """(verdict, answer)."""
    found = judge_connection(watched(*arguments, **values))
    return found.verdict, connection_answer(found)


def test_a_reader_that_has_stopped():
    """Data waits all the time, and nothing is read."""
    last = {"bytes_received": 3 * MIB, "rcv_ssthresh": 3 * MIB}
    verdict, answer = judged(last, last, samples=steady(recv_queue=2 * MIB, rcv_ssthresh=3 * MIB), recv_queue=2 * MIB)
    assert verdict == verdicts.READER_HERE
    assert answer.startswith("this application does not read: 2.0 MiB wait")


def test_a_reader_that_is_slow():
    """50 kB/s with 64 KiB waiting: each byte waits for more than a second."""
    last = {"bytes_received": 100_000}
    verdict, answer = judged({}, last, samples=steady(recv_queue=65_536), recv_queue=65_536)
    assert verdict == verdicts.READER_HERE
    assert (
        answer == "this application does not read fast enough: 48.8 KiB/s; 64.0 KiB wait for 1.3 s in its receive queue"
    )


def test_a_slow_reader_of_large_segments():
    """On the loopback device 64 KiB arrive when the queue is nearly empty: it is short at half of the looks, and data waits long."""
    last = {"bytes_received": 160_000, "rcv_ssthresh": 90_000}
    falling = [
        sample._replace(recv_queue=65_483 - place * 4096 % 65_483)
        for place, sample in enumerate(steady(rcv_ssthresh=90_000))
    ]
    assert judged({}, last, samples=falling)[0] == verdicts.READER_HERE
    read_now_and_then = [
        sample._replace(recv_queue=sample.recv_queue * (place % 3 > 0)) for place, sample in enumerate(falling)
    ]
    assert judged({}, last, samples=read_now_and_then)[0] != verdicts.READER_HERE


def test_a_fast_reader_with_a_queue_is_not_slow():
    """130 MB/s: some data waits at 3 of 4 looks; also where the queue is long the time is short."""
    last = {"bytes_received": 260_000_000, "data_segs_in": 180_000, "segs_in": 180_000, "rcv_ssthresh": 6 * MIB}
    samples = [
        sample._replace(recv_queue=200_000 * (place % 4 > 0))
        for place, sample in enumerate(steady(rcv_ssthresh=6 * MIB))
    ]
    assert judged({}, last, samples=samples)[0] == verdicts.WRITER_THERE
    saturated = steady(recv_queue=3 * MIB, rcv_ssthresh=6 * MIB)
    verdict, answer = judged({}, last, samples=saturated, recv_queue=3 * MIB)
    assert verdict == verdicts.BANDWIDTH
    assert "124 MiB/s" in answer


def test_a_request_that_nobody_reads():
    """A server that hangs leaves a few bytes in the queue. A client may leave a goodbye of its server unread."""
    samples = steady(recv_queue=300, last_data_recv_ms=9000)
    assert judged({}, {}, samples=samples, recv_queue=300, inbound=True)[0] == verdicts.READER_HERE
    assert judged({}, {}, samples=samples, recv_queue=300) == (verdicts.IDLE, "idle; 300 B wait in the receive queue")
    waiting = judged({}, {}, samples=samples, recv_queue=300, inbound=True, inode=0, owner=None)
    assert (
        waiting[1]
        == "this application does not read: 300 B wait in its receive queue, it has not accepted the connection"
    )
    # The end of the data, which the peer has sent, counts as a byte that was not read.
    assert (
        judged({}, {}, samples=steady(recv_queue=1), recv_queue=1, inbound=True, state=CLOSE_WAIT)[0] == verdicts.IDLE
    )


def test_a_peer_that_has_stopped_reading():
    """Its window is closed."""
    last = {"busy_us": 2_000_000, "rwnd_limited_us": 1_990_000, "snd_wnd": 0}
    samples = steady(send_queue=MIB, snd_wnd=0)
    verdict, answer = judged({"snd_wnd": 0}, last, samples=samples, send_queue=MIB)
    assert (verdict, answer.partition(":")[0]) == (verdicts.READER_THERE, "the peer does not read")
    assert judged({"snd_wnd": 0}, last, send_queue=MIB)[0] == verdicts.READER_THERE, "two looks are enough"


def test_a_peer_that_reads_slowly():
    """50 kB/s, and the window was full."""
    last = {"bytes_acked": 100_000, "bytes_sent": 100_000, "busy_us": 2_000_000, "rwnd_limited_us": 1_900_000}
    samples = [sample._replace(snd_wnd=4000 * (place % 3)) for place, sample in enumerate(steady(send_queue=MIB))]
    verdict, answer = judged({}, last, samples=samples, send_queue=MIB)
    assert verdict == verdicts.READER_THERE
    assert answer == (
        "the peer does not read fast enough: 48.8 KiB/s; its window was full 95 % of the busy time, 1.0 MiB wait here"
    )


def test_a_fast_peer_with_a_full_window():
    """On one machine the reader's window is often full, but data waits for milliseconds: the machine sets the pace."""
    last = {"bytes_acked": 1_000 * MIB, "bytes_sent": 1_000 * MIB, "busy_us": 2_000_000, "rwnd_limited_us": 1_500_000,
            "rtt_us": 80, "min_rtt_us": 20}  # fmt: skip
    samples = steady(send_queue=2 * MIB, unacked=400, rtt_us=80)
    verdict, answer = judged({}, last, samples=samples, send_queue=2 * MIB)
    assert verdict == verdicts.BANDWIDTH
    assert answer.endswith("as fast as the peer reads (its window was full 75 % of the busy time)")
    # A reader that takes 6 MiB every 50 ms: data arrives late, but not for a queue on the path.
    slow = {**last, "rtt_us": 12_000, "bytes_acked": 260_000_000}
    assert judged({}, slow, samples=steady(send_queue=3 * MIB, unacked=400, rtt_us=12_000))[0] == verdicts.BANDWIDTH


def test_a_window_that_is_smaller_than_the_path():
    """The peer reads at once: its window never closes, and all of it arrives every round trip."""
    rtt_us, window = 100_000, 65_535
    sent = window * 20
    last = {"bytes_acked": sent, "bytes_sent": sent, "busy_us": 2_000_000, "rwnd_limited_us": 1_900_000,
            "rtt_us": rtt_us, "min_rtt_us": rtt_us}  # fmt: skip
    samples = steady(send_queue=4 * MIB, unacked=45, rtt_us=rtt_us, snd_wnd=window)
    verdict, answer = judged({}, last, samples=samples, send_queue=4 * MIB)
    assert verdict == verdicts.PEER_WINDOW
    assert answer.startswith("the peer's receive window (64.0 KiB) is too small")


def test_loss():
    """2.0 % of the bytes were sent again."""
    last = {"bytes_acked": 10_000_000, "bytes_sent": 10_000_000, "bytes_retrans": 198_000, "total_retrans": 137,
            "data_segs_out": 6900, "busy_us": 2_000_000}  # fmt: skip
    verdict, answer = judged({}, last, samples=steady(send_queue=MIB, unacked=10))
    assert verdict == verdicts.LOSS
    assert answer.startswith("the network loses 2.0 %: 137 of 6,900 segments had to be sent again; 4.8 MiB/s")
    # What the peer reports to have twice was sent again in vain.
    vain = {**last, "dsack_dups": 100}
    assert judge_connection(watched({}, vain)).rates.loss == pytest.approx((198_000 - 100 * MSS) / 1e7)
    # Two retransmissions among few segments are no share; before Linux 4.19 segments stand for bytes.
    assert judged({}, {**last, "total_retrans": 2, "bytes_retrans": 2 * MSS, "bytes_sent": 50_000})[0] != verdicts.LOSS
    old = {**OLD, "bytes_acked": 10_000_000, "bytes_received": 0, "segs_out": 6900, "total_retrans": 137}
    first = {**old, "bytes_acked": 0, "segs_out": 0, "total_retrans": 0}
    assert judge_connection(watched(first, old)).rates.loss == pytest.approx(137 / 6900)


BULK = {"bytes_acked": 1_000_000, "bytes_sent": 1_000_000, "data_segs_out": 690, "busy_us": 2_000_000}


def test_queueing():
    """RTT far above its minimum while the line is full."""
    last = {**BULK, "rtt_us": 310_000, "min_rtt_us": 22_000}
    verdict, answer = judged({}, last, samples=steady(send_queue=MIB, unacked=100, rtt_us=310_000, snd_wnd=MIB))
    assert verdict == verdicts.QUEUEING
    assert answer.startswith("queueing: RTT 310 ms, 14 times its minimum of 22 ms; 488 KiB/s")
    assert "bandwidth" in answer


def test_a_late_acknowledgement_on_one_machine_is_no_queue():
    """A reader at a pace acknowledges when it reads: over loopback and veth nothing else can hold data up."""
    last = {
        "bytes_acked": 260_000_000,
        "bytes_sent": 260_000_000,
        "busy_us": 2_000_000,
        "rtt_us": 10_000,
        "min_rtt_us": 5,
    }
    samples = steady(send_queue=4 * MIB, unacked=500, rtt_us=10_000, snd_wnd=30 * MIB)
    verdict, answer = judged({}, last, samples=samples, send_queue=4 * MIB)
    assert (verdict, answer.partition(",")[2]) == (
        verdicts.BANDWIDTH,
        " as fast as this machine and the peer's program can",
    )
    assert judged({}, {**last, "min_rtt_us": 200}, samples=samples, send_queue=4 * MIB)[0] == verdicts.QUEUEING


@pytest.mark.parametrize(("grown", "limit", "verdict"), [
    ({}, 131_072, verdicts.OWN_WINDOW),
    ({}, 65_536, verdicts.WRITER_THERE),  # the kernel still enlarges it
    ({"bytes_received": 2_000_000}, 131_072, verdicts.WRITER_THERE),
    ({"min_rtt_us": 400}, 131_072, verdicts.WRITER_THERE),
    ({"bytes_acked": 60_000, "data_segs_out": 700}, 131_072, verdicts.REQUESTS),
])  # fmt: skip
def test_a_receive_buffer_that_is_too_small(grown, limit, verdict):
    """As much as it allows comes in each round trip, and is read at once."""
    last = {"bytes_received": 4_000_000, "data_segs_in": 2800, "min_rtt_us": 40_000, "rcv_ssthresh": 80_480, **grown}
    seen = watched({}, last, samples=steady(rcv_ssthresh=80_480))
    first, last = (socket._replace(memory=SocketMemory(0, size, 0, 0)) for socket, size in ((seen.first, limit), (seen.last, 131_072)))  # fmt: skip
    found = judge_connection(seen._replace(first=first, last=last))
    assert found.verdict == verdict
    if verdict == verdicts.OWN_WINDOW:
        assert connection_answer(found) == (
            "our receive buffer allows a window of 78.6 KiB and is too small: 1.9 MiB/s at RTT 40 ms fill it"
        )


def test_bandwidth():
    """The line is full without a queue. A writer that pauses between its messages does not fill it."""
    last = {**BULK, "rtt_us": 24_000, "min_rtt_us": 22_000}
    verdict, answer = judged({}, last, samples=steady(send_queue=MIB, unacked=10, rtt_us=24_000))
    assert (verdict, answer) == (verdicts.BANDWIDTH, "limited by bandwidth: 488 KiB/s at RTT 24 ms, no loss, no queue")
    all_sent = steady(send_queue=5 * MSS, unacked=5, rtt_us=24_000)
    assert judged({}, {**last, "busy_us": 1_300_000}, samples=all_sent)[0] == verdicts.WRITER_HERE


def test_a_send_buffer_that_is_too_small():
    """The writer waits for space while all is on its way. At a RTT of microseconds that is no matter of the buffer."""
    last = {**BULK, "sndbuf_limited_us": 1_900_000, "rtt_us": 50_000, "min_rtt_us": 50_000}
    verdict, answer = judged({}, last, samples=steady(send_queue=8 * MSS, unacked=8, rtt_us=50_000))
    assert verdict == verdicts.SEND_BUFFER
    assert answer.startswith(
        "our send buffer is too small: the writer waited for space 95 % of the busy time; 488 KiB/s"
    )
    near = {**last, "rtt_us": 60, "min_rtt_us": 20}
    assert judged({}, near, samples=steady(send_queue=MIB, unacked=800, rtt_us=60))[0] == verdicts.BANDWIDTH


def test_a_black_hole():
    """Full segments are sent again and again; the short end of the same data has arrived."""
    last = {"bytes_acked": 600, "data_segs_out": 8, "total_retrans": 3, "retransmits": 3, "unacked": 4, "sacked": 1,
            "busy_us": 2_000_000}  # fmt: skip
    first = {**last, "total_retrans": 2, "retransmits": 2}
    verdict, answer = judged(first, last, samples=steady(send_queue=5000, unacked=4), send_queue=5000)
    assert verdict == verdicts.BLACK_HOLE
    assert answer.startswith("MTU black hole: full segments (1,448 bytes)")
    # Nothing but full segments was ever sent: small requests came from the peer.
    silent = {**last, "sacked": 0, "bytes_received": 300, "data_segs_out": 13, "unacked": 10, "bytes_acked": 1}
    assert (
        judged(silent, silent, samples=steady(send_queue=15_000, unacked=10), send_queue=15_000)[0]
        == verdicts.BLACK_HOLE
    )


def test_a_peer_that_is_gone():
    """Full segments arrived before: no black hole; nor where less than a full segment waits."""
    worked = {"bytes_acked": 50 * MSS, "data_segs_out": 60, "total_retrans": 5, "retransmits": 5, "unacked": 5,
              "bytes_received": 300, "last_ack_recv_ms": 12_000}  # fmt: skip
    verdict, answer = judged(worked, worked, send_queue=5 * MSS)
    assert verdict == verdicts.UNANSWERED
    assert answer.startswith("the peer does not answer: data was sent again 5 times, last acknowledgement 12.0 s ago")
    small = {**worked, "bytes_acked": 1, "data_segs_out": 6, "unacked": 1}
    assert judged(small, small, send_queue=100)[0] == verdicts.UNANSWERED
    # One lost segment is sent again before long.
    assert judged({**worked, "retransmits": 1}, {**worked, "retransmits": 1}, send_queue=100)[0] == verdicts.UNKNOWN


def test_a_connection_that_is_not_made():
    """Its SYN was sent again."""
    syn = tcp_socket(info(retransmits=2), state=SYN_SENT, retransmits=2)
    found = judge_connection(Watched(syn, syn, 0.0, False, None))
    assert found.verdict == verdicts.UNANSWERED
    assert connection_answer(found) == "the peer does not answer: no connection yet, the SYN was sent again 2 times"
    # Without that its answer may be on its way: it has no window yet that could be closed.
    syn = info(snd_wnd=0, unacked=1)
    begun = watched({}, {}, samples=steady(send_queue=1, snd_wnd=0, unacked=1), state=SYN_SENT, send_queue=1)
    found = judge_connection(begun._replace(last=begun.last._replace(info=syn)))
    assert (found.verdict, connection_answer(found)) == (
        verdicts.UNKNOWN, "unknown: no connection yet, the SYN has no answer so far",
    )  # fmt: skip


def test_requests_and_responses():
    """A server that takes 100 ms, a RTT of 40 ms, a client that takes 10 ms."""
    found = judge_connection(Exchange(rtt=40, peer=100, here=10).watched())
    assert found.verdict == verdicts.REQUESTS
    assert sum(found.shares) == pytest.approx(1)
    assert found.shares == pytest.approx((0.667, 0.267, 0.067), abs=0.03)
    assert connection_answer(found).startswith("request/response: peer's application 6")


@pytest.mark.parametrize("acks", ["at once", "late"])
@pytest.mark.parametrize("tick", [1, 4])
@pytest.mark.parametrize(("rtt", "peer", "here"), [
    (40, 100, 10), (40, 10, 100), (0.2, 100, 50), (1, 20, 3), (10, 5, 50), (40, 5, 3), (1, 50, 0.5), (10, 5, 5), (0.2, 12, 1),
])  # fmt: skip
@pytest.mark.parametrize("per_s", [20, 50])
def test_shares_are_within_five_points(rtt, peer, here, acks, tick, per_s):
    """Also where the peer acknowledges late, by its answer or after 40 ms, and where a cycle is shorter than the gap between samples."""
    within = []
    for seed in range(9):
        exchange = Exchange(rtt=rtt, peer=peer, here=here, acks=acks, tick=tick, spread=0.3, seed=seed)
        shares = judge_connection(exchange.watched(per_s=per_s)).shares
        if shares is not None:
            within.append(max(abs(found - true) for found, true in zip(shares, exchange.shares())))
    assert len(within) >= 8
    assert sum(within) / len(within) <= 0.05
    assert max(within) <= 0.12  # 40 samples of something random


def test_shares_of_a_window_without_samples():
    """One connection read twice has none; it is a verdict all the same."""
    found = judge_connection(Exchange(rtt=40, peer=100, here=10).watched(sampled=False))
    assert (found.verdict, found.shares) == (verdicts.REQUESTS, None)
    assert connection_answer(found) == (
        "request/response: 7 exchanges/s; data was on its way 28 % of the time; who takes the rest cannot be told: "
        "there are too few samples"
    )


def test_who_thinks_cannot_be_told_within_a_tick():
    """20,000 exchanges a second: the order of two events in the same tick is unknown, and so are the shares."""
    found = judge_connection(
        Exchange(rtt=0.02, peer=0.02, here=0.01, tick=4, spread=0.5).watched(seconds=0.5, begin_ms=100)
    )
    assert found.verdict == verdicts.REQUESTS
    assert found.shares is None
    assert connection_answer(found).endswith("exchanges are too short for the kernel's clock")


def test_programs_that_take_no_time_have_no_shares():
    """1,000 exchanges a second: what wake-ups and system calls take is nobody's share."""
    found = judge_connection(Exchange(rtt=0.02, peer=0.5, here=0.4, tick=4, spread=0.5).watched(begin_ms=100))
    assert (found.verdict, found.shares) == (verdicts.REQUESTS, None)


def test_the_order_of_a_long_answer_and_its_request():
    """A server whose client asks again at once: both are in the same tick, and acknowledgements of a long answer tell nothing."""
    last = {"bytes_acked": 6_500_000, "bytes_received": 13_000, "data_segs_out": 4550, "data_segs_in": 65, "segs_in": 160,
            "segs_out": 4550, "busy_us": 20_000, "min_rtt_us": 20, "rtt_us": 40}  # fmt: skip
    found = judge_connection(watched({}, last, samples=steady(100, last_data_sent_ms=12, last_data_recv_ms=12)))
    assert (found.verdict, found.shares) == (verdicts.REQUESTS, None)
    assert connection_answer(found).endswith("they do not show when a long message was complete")


def test_one_way():
    """Who writes sets the pace; the receiver sees only segments that come out of order."""
    last = {"bytes_acked": 200_000, "bytes_sent": 200_000, "data_segs_out": 140, "busy_us": 300_000}
    assert judged({}, last, samples=steady()) == (
        verdicts.WRITER_HERE, "this application does not write faster: 97.7 KiB/s, nothing on its way 85 % of the time",
    )  # fmt: skip
    last = {"bytes_received": 200_000, "data_segs_in": 140, "rcv_ooopack": 14}
    verdict, answer = judged({}, last, samples=steady())
    assert verdict == verdicts.WRITER_THERE
    assert answer.startswith(
        "the peer does not write faster: 97.7 KiB/s, read at once; 10 % of its segments arrive out of order"
    )


def test_a_stream_with_small_confirmations_is_no_request():
    """A download whose reader confirms now and then, and an upload whose reader does."""
    down = {
        "bytes_received": 20_000_000,
        "data_segs_in": 14_000,
        "bytes_acked": 4000,
        "data_segs_out": 300,
        "busy_us": 100_000,
    }
    assert judged({}, down, samples=steady(last_data_sent_ms=40))[0] == verdicts.WRITER_THERE
    up = {
        "bytes_acked": 2_000_000,
        "data_segs_out": 1400,
        "bytes_received": 400,
        "data_segs_in": 30,
        "busy_us": 700_000,
    }
    assert judged({}, up, samples=steady(last_data_recv_ms=40))[0] == verdicts.WRITER_HERE


def test_nothing_happened():
    assert judged({}, {}) == (verdicts.IDLE, "idle")
    assert judged({}, {}, samples=steady(last_data_sent_ms=60_000, last_data_recv_ms=60_000)) == (verdicts.IDLE, "idle")


def test_an_answer_that_takes_longer_than_the_window():
    """Nothing moves; who sent last is said. A server that has answered is at rest, and so is a client that has its answer."""
    asked = {"bytes_acked": 900, "bytes_received": 5000, "last_data_sent_ms": 12_000, "last_data_recv_ms": 14_000}
    answered = {**asked, "last_data_recv_ms": 11_000}
    assert judged(asked, asked)[1] == "idle; our last message, 12.0 s ago, has no answer so far"
    assert judged(answered, answered)[1] == "idle"
    assert (
        judged(answered, answered, inbound=True)[1] == "idle; the peer's last message, 11.0 s ago, has no answer so far"
    )
    assert judged(asked, asked, inbound=True)[1] == "idle"
    one_way = {**asked, "bytes_received": 0}
    assert judged(one_way, one_way)[1] == "idle"


def test_a_single_look_has_no_verdict():
    """A copy, and a connection that is new in the window."""
    once = tcp_socket(info(bytes_acked=5000, busy_us=900), recv_queue=MIB)
    found = judge_connection(Watched(once, once, 0.0, False, None))
    assert (found.verdict, found.rates.sent_bytes_s, found.rates.recv_queue_bytes) == (verdicts.UNKNOWN, None, MIB)
    assert connection_answer(found).startswith("unknown: seen once")


def test_queues_alone():
    """/proc/PID/net/tcp has no counters: only a queue that never moves, a closed window and repeated retransmissions are told."""

    def by_proc(first, last, samples=(), **values):
        sockets = [tcp_socket(None, **values)._replace(**each) for each in (first, last)]
        return judge_connection(Watched(*sockets, 2.0, False, None, tuple(samples))).verdict

    assert by_proc({"recv_queue": MIB}, {"recv_queue": MIB}) == verdicts.READER_HERE
    assert by_proc({"recv_queue": MIB}, {"recv_queue": MIB // 2}) == verdicts.UNKNOWN
    assert by_proc({"recv_queue": 31}, {"recv_queue": 31}) == verdicts.UNKNOWN
    assert by_proc({"timer": 4}, {"timer": 4}, send_queue=MIB) == verdicts.READER_THERE
    assert by_proc({"timer": 1}, {"timer": 1, "retransmits": 4}, send_queue=MIB) == verdicts.UNANSWERED
    assert by_proc({}, {}) == verdicts.UNKNOWN


def test_damaged_counters_never_raise():
    """Counters that go back, absurd values, missing fields: a verdict, and shares and rates that are shares and rates."""
    dice = random.Random(7)  # noqa: S311
    edges = (0, 1, 2, 1000, 1448, 40_000, 10**6, 10**9, 2**31, 2**32 - 1, 2**63, 2**64 - 1)

    def some():
        values = {name: dice.choice(edges) for name in TcpInfo._fields}
        values.update({name: None for name in TcpInfo._field_defaults if dice.random() < 0.2})
        return values

    for _ in range(3000):
        queues = {"recv_queue": dice.choice(edges), "send_queue": dice.choice(edges), "state": dice.randrange(1, 13)}
        samples = [
            sample._replace(**{name: dice.choice(edges) for name in sample._fields[1:]}) for sample in steady(dice.choice((2, 30)))
        ] * dice.randrange(2)  # fmt: skip
        found = judge_connection(watched(some(), some(), seconds=dice.choice((0.0, 1e-9, 2.0, 1e6)), samples=samples,
                                         inbound=dice.random() < 0.5, **queues))  # fmt: skip
        assert found.verdict in VERDICTS
        assert connection_answer(found)
        rates = found.rates
        for share in (rates.loss, rates.busy, rates.rwnd_limited, rates.sndbuf_limited, *(found.shares or ())):
            assert share is None or 0 <= share <= 1
