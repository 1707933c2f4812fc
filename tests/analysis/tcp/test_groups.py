"""Connections judged together, what is said about them, and which verdicts are findings."""

from __future__ import annotations

import pytest
from tcptraffic import OWNER, PEER, Exchange, steady, watched

from opskit.analysis.tcp import groups
from opskit.analysis.tcp import result as verdicts
from opskit.analysis.tcp.connection import shares_of
from opskit.analysis.tcp.groups import groups_of
from opskit.analysis.tcp.harm import connection_findings
from opskit.analysis.tcp.result import Shares
from opskit.analysis.tcp.words import connection_subject, percents, sentence
from opskit.catalog import FINDINGS
from opskit.collect.tcp.facts import Idle
from opskit.proc.tcp_sockets import FIN_WAIT_1

MIB = 1 << 20
STOPPED = {"recv_queue": 2 * MIB, "samples": steady(recv_queue=2 * MIB)}
BLOCKED = {"send_queue": MIB, "samples": steady(send_queue=MIB, snd_wnd=0)}
LOSSY = {"bytes_acked": 10_000_000, "bytes_sent": 10_000_000, "bytes_retrans": 198_000, "total_retrans": 137,
         "data_segs_out": 6900, "busy_us": 2_000_000}  # fmt: skip
CUT_OFF = {"bytes_acked": 72_000, "data_segs_out": 60, "total_retrans": 5, "retransmits": 5, "unacked": 1}


def asking(number=20, **values):
    return [
        Exchange(**{"rtt": 4, "peer": 83, "here": 13, "spread": 0.4, "seed": seed, **values}).watched()
        for seed in range(number)
    ]


def codes(*connections):
    return [finding.code for finding in connection_findings(groups_of(connections))]


def test_a_group_in_a_sentence():
    """Who takes most of the time comes first."""
    (group,) = groups_of(asking())
    assert group.verdict == verdicts.REQUESTS
    assert group.shares == pytest.approx((0.83, 0.04, 0.13), abs=0.02)
    said = sentence(group)
    assert said.startswith("orders -> 10.0.0.7:5432 (20 connections): the peer's application takes 8")
    assert ", this application 1" in said
    assert group.pids == (OWNER.pid,)


def test_many_connections_that_were_read_twice_have_shares():
    """Two looks at each of 200 connections are 400 samples."""
    exchanges = [Exchange(rtt=4, peer=83, here=13, spread=0.9, seed=seed) for seed in range(200)]
    pairs = [each.watched(sampled=False, begin_ms=500 + 7 * seed) for seed, each in enumerate(exchanges)]
    (group,) = groups_of(pairs)
    assert group.shares == pytest.approx((0.83, 0.04, 0.13), abs=0.06)
    assert all(each.shares is None for each in group.judged)


def test_the_shares_of_thousands_of_connections_are_taken_of_some(monkeypatch):
    """They cost most of the time of a judgement; the others of the same group do not change them much."""
    pairs = [
        Exchange(rtt=4, peer=83, here=13, spread=0.9, seed=seed).watched(sampled=False, begin_ms=500 + 7 * seed)
        for seed in range(300)
    ]
    taken = []

    def count(evidence):
        taken.append(evidence)
        return shares_of(evidence)

    monkeypatch.setattr(groups, "shares_of", count)
    (group,) = groups_of(pairs * 7)
    assert group.connections == 2100
    assert 100 < len(taken) <= 200
    assert group.shares == pytest.approx((0.83, 0.04, 0.13), abs=0.06)


def test_the_names_of_groups():
    """Both directions, IPv6, and a socket without a known owner."""
    inbound = watched({}, {"bytes_received": 5000}, inbound=True, local_port=8080)
    v6 = watched({}, {"bytes_received": 5000}, peer=bytes(15) + b"\1", local=bytes(15) + b"\1", owner=None)
    names = [sentence(group).partition(":  ")[0] for group in groups_of([inbound, v6])]
    assert names[0].startswith("-> [::1]:5432 (1 connection): the peer does not write faster")
    assert names[1].startswith("10.0.0.7 -> orders:8080 (1 connection): the peer does not write faster")
    (first,), (second,) = (group.judged for group in groups_of([inbound, v6]))
    assert connection_subject(first) == "-> [::1]:5432 from port 40000"
    assert connection_subject(second) == "10.0.0.7:5432 -> orders:8080"


def test_the_worst_group_first():
    """And in a group the worst connection; idle ones do not decide."""
    idle = [watched({}, {}) for _ in range(30)]
    stopped = watched({}, {}, peer_port=9, **STOPPED)
    first, second = groups_of([*idle, *asking(3), stopped])
    assert (first.verdict, first.port) == (verdicts.READER_HERE, 9)
    assert second.verdict == verdicts.REQUESTS
    assert second.verdicts == ((verdicts.REQUESTS, 3), (verdicts.IDLE, 30))
    assert [each.verdict for each in second.judged[:4]] == [verdicts.REQUESTS] * 3 + [verdicts.IDLE]


def test_traffic_decides_as_much_as_numbers():
    """One upload with nearly all bytes beside three quiet writers."""
    quiet = {"bytes_acked": 3000, "bytes_sent": 3000, "busy_us": 1000}
    bulk = watched({}, {"bytes_acked": 20 * MIB, "busy_us": 2_000_000}, samples=steady(send_queue=MIB, unacked=10))
    (group,) = groups_of([watched({}, quiet) for _ in range(3)] + [bulk])
    assert group.verdict == verdicts.BANDWIDTH


def test_loss_of_all_connections_together():
    """Two retransmissions on each of many connections."""
    few = {"bytes_acked": 100_000, "bytes_sent": 100_000, "bytes_received": 100_000, "bytes_retrans": 2896,
           "total_retrans": 2, "data_segs_out": 70, "data_segs_in": 70}  # fmt: skip
    (group,) = groups_of([watched({}, few) for _ in range(10)])
    assert group.verdict == verdicts.LOSS
    assert group.rates.loss == pytest.approx(0.02896)
    assert "the network loses 2.9 %: 20 of 700 segments" in sentence(group)


@pytest.mark.parametrize(
    "shares", [(0.668, 0.266, 0.066), (1 / 3, 1 / 3, 1 / 3), (0.005, 0.005, 0.99), (1, 0, 0), (0.0, 0.996, 0.004)]
)
def test_percents_add_up(shares):
    """To 100, each within one of the exact value."""
    found = percents(Shares(*shares))
    assert sum(found) == 100
    assert all(abs(each - share * 100) < 1 for each, share in zip(found, shares))


def test_the_least_rtt_of_a_peer_is_that_of_any_connection():
    """A connection whose answers acknowledge its requests has measured the peer's application with each round trip."""
    late = Exchange(rtt=1, peer=15, here=14, acks="late", spread=0.3).watched()
    aged = late.last._replace(info=late.last.info._replace(min_rtt_us=10_000, rtt_us=16_000))
    young = watched({}, {"min_rtt_us": 1000}, local_port=40_001)
    (alone,) = groups_of([late._replace(last=aged)])
    (together,) = groups_of([late._replace(last=aged), young])
    assert alone.shares.network == pytest.approx(0.33, abs=0.05)
    assert together.shares.network == pytest.approx(1 / 30, abs=0.02)


@pytest.mark.parametrize(("connection", "code"), [
    (watched({}, {}, **STOPPED), "tcp-application-does-not-read"),
    (watched({}, {"bytes_received": 10_000}, **STOPPED), "tcp-application-does-not-read"),
    (watched({}, {"busy_us": 2_000_000, "rwnd_limited_us": 2_000_000, "backoff": 4}, **BLOCKED), "tcp-peer-does-not-read"),
    (watched({}, LOSSY), "tcp-network-loses"),
    (watched(CUT_OFF, CUT_OFF, send_queue=100), "tcp-peer-does-not-answer"),
    (watched({**CUT_OFF, "sacked": 2}, {**CUT_OFF, "sacked": 2}, send_queue=5000), "tcp-mtu-black-hole"),
])  # fmt: skip
def test_harm_is_a_finding(connection, code):
    """A warning about the process and the peer, with what to look at next; every code is in the catalog."""
    (finding,) = connection_findings(groups_of([connection]))
    assert (finding.code, finding.severity) == (code, "warning")
    assert code in FINDINGS
    assert finding.entity.inside.id == OWNER.pid
    assert finding.summary.startswith("orders -> 10.0.0.7:5432 (1 connection): ")
    assert "10.0.0.2:40000 to 10.0.0.7:5432; fd 9 of 4242" in finding.evidence
    assert finding.next


@pytest.mark.parametrize("connection", [
    pytest.param(watched({}, {"bytes_received": 30 * MIB}, **STOPPED), id="reads 2 MiB within a second"),
    pytest.param(watched({}, {}, seconds=0.5, **STOPPED), id="half a second may be a pause"),
    pytest.param(watched({}, {"bytes_acked": 50_000, "busy_us": 2_000_000, "rwnd_limited_us": 2_000_000}, **BLOCKED), id="a slow peer"),
    pytest.param(watched({}, {"busy_us": 2_000_000, "rwnd_limited_us": 2_000_000, "backoff": 3}, **BLOCKED), id="a slow reader between two windows"),
    pytest.param(watched({}, {"busy_us": 2_000_000, "rwnd_limited_us": 2_000_000, "backoff": 9}, inbound=True, **BLOCKED), id="a client that does not read"),
    pytest.param(watched(CUT_OFF, CUT_OFF, send_queue=100, inbound=True), id="a client that is gone"),
    pytest.param(watched(CUT_OFF, CUT_OFF, send_queue=1, state=FIN_WAIT_1, inode=0, owner=None), id="closed here, and the peer is gone"),
    pytest.param(watched({}, {**LOSSY, "total_retrans": 5, "data_segs_out": 250, "bytes_sent": 360_000, "bytes_retrans": 7240}), id="too few segments"),
    pytest.param(watched({}, {"bytes_acked": 9_000_000, "busy_us": 2_000_000, "rtt_us": 400_000}, samples=steady(send_queue=MIB, unacked=10, rtt_us=400_000)), id="queueing"),
    pytest.param(Exchange(rtt=1, peer=400, here=1).watched(), id="a slow answer"),
    pytest.param(watched({}, {}), id="idle"),
])  # fmt: skip
def test_normal_work_is_no_finding(connection):
    assert codes(connection) == []


def test_one_client_with_a_bad_line_among_many():
    """Loss is a finding where it is 5 % of what is sent."""
    good = {"bytes_acked": 10_000_000, "bytes_sent": 10_000_000, "data_segs_out": 6900, "busy_us": 100_000}
    others = [watched({}, good, peer=PEER[:3] + bytes([number])) for number in range(100, 130)]
    assert codes(watched({}, LOSSY)) == ["tcp-network-loses"]
    assert codes(watched({}, LOSSY), *others) == []


def test_clients_on_the_internet():
    """Their lines lose some all day: 2 % is no finding, 6 % is. A server there, and a client in this network, are held to 1 %."""
    public = bytes([9, 9, 9, 9])
    much = {**LOSSY, "bytes_retrans": 600_000, "total_retrans": 414}
    assert codes(watched({}, LOSSY, peer=public, inbound=True)) == []
    assert codes(watched({}, much, peer=public, inbound=True)) == ["tcp-network-loses"]
    assert codes(watched({}, LOSSY, peer=public)) == ["tcp-network-loses"]
    assert codes(watched({}, LOSSY, inbound=True)) == ["tcp-network-loses"]


def test_a_black_hole_needs_proof():
    """A single silent peer may be gone; two show the same by chance hardly ever."""
    silent = {
        "bytes_acked": 1,
        "bytes_received": 300,
        "data_segs_out": 13,
        "unacked": 10,
        "total_retrans": 3,
        "retransmits": 3,
    }
    one = watched(silent, silent, send_queue=15_000, inbound=True)
    assert groups_of([one])[0].verdict == verdicts.BLACK_HOLE
    assert codes(one) == []
    assert codes(one, one) == ["tcp-mtu-black-hole"]


def test_idle_connections_that_were_only_counted():
    """They belong to the group of the others, or are one of their own."""
    counted = [
        Idle(OWNER, PEER, 5432, False, 1, 19_000),
        Idle(OWNER, PEER, 5432, False, 8, 5),
        Idle(None, PEER, 80, True, 1, 7),
    ]
    first, second = groups_of(asking(2), counted)
    assert first.verdicts == ((verdicts.REQUESTS, 2), (verdicts.IDLE, 19_005))
    assert sentence(first).startswith("orders -> 10.0.0.7:5432 (19,007 connections): the peer's application takes 8")
    assert (second.verdict, second.judged, second.connections, second.pids) == (verdicts.IDLE, (), 7, ())
    assert sentence(second) == "10.0.0.7 -> :80 (7 connections): idle"


def test_the_same_address_in_two_network_namespaces():
    """127.0.0.1 of two containers are two peers."""
    one, two = (watched({}, {"bytes_acked": 5000}, local_port=number)._replace(space=number) for number in (0, 1))
    assert [(group.space, group.connections) for group in groups_of([one, two])] == [(0, 1), (1, 1)]
    assert {group.space for group in groups_of([], [Idle(None, PEER, 80, True, 1, 7, space) for space in (0, 1)])} == {
        0,
        1,
    }
