"""`opskit tcp` on staged networks: each verdict beside what the programs and the line did by their own count."""

from __future__ import annotations

import contextlib
import time

import netlab
import pytest
from netcases import CASES, FULL_SPEED, PORT, READS, RECEIVES, VETH, WRITES, Case, group_of, look, staged

from opskit.analysis.tcp import result as verdicts

# Of long answers fewer looks tell who takes the time, and on a crowded machine the programs' own count is off too.
SHARED = {
    "requests": 0.05,
    "requests, IPv6": 0.05,
    "slow client program": 0.05,
    "long answers": 0.15,
    "longest answers": 0.15,
}


@pytest.fixture(scope="module")
def seen():
    """All quiet cases, looked at in one window: their ends, the result, and totals of before and after by case."""
    with contextlib.ExitStack() as stack:
        ends = {name: stack.enter_context(staged(case, port)) for port, (name, case) in enumerate(CASES.items(), PORT)}
        time.sleep(1)
        before = {name: each.totals() for name, each in ends.items()}
        result = look(*(program.pid for each in ends.values() for program in (each.here, each.there)))
        after = {name: each.totals() for name, each in ends.items()}
        yield ends, result, {name: tuple(zip(before[name], after[name])) for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_verdict_at_both_ends(seen, name):
    """Each end says what holds the connection back, as far as it can be seen from there."""
    ends, result, _ = seen
    here, there = (group_of(result, program.pid) for program in (ends[name].here, ends[name].there))
    assert here.verdict in CASES[name].here_says, here
    assert there.verdict in CASES[name].there_says, there
    assert (here.inbound, there.inbound) == (False, True)
    assert here.port == there.port


@pytest.mark.parametrize(("name", "bound"), SHARED.items())
def test_shares_of_requests(seen, name, bound):
    """The shares of server, network and client are within 5 points of what the programs measured, seen from either end."""
    ends, result, totals = seen
    truth = netlab.shares(*totals[name])
    asks, serves = (group_of(result, program.pid).shares for program in (ends[name].here, ends[name].there))
    assert (asks.peer, asks.network, asks.here) == pytest.approx(tuple(truth), abs=bound)
    assert (serves.here, serves.network, serves.peer) == pytest.approx(tuple(truth), abs=bound)
    assert (sum(asks), sum(serves)) == pytest.approx((1, 1))


def test_rates(seen):
    """Bytes a second are those of the programs; round trips are those of the line."""
    ends, result, totals = seen
    (received, sent) = totals["slow writer"]
    writes, reads = (
        group_of(result, program.pid).rates for program in (ends["slow writer"].here, ends["slow writer"].there)
    )
    assert writes.sent_bytes_s == pytest.approx(100e3, rel=0.15), sent
    assert reads.received_bytes_s == pytest.approx(100e3, rel=0.15), received
    assert 39 < group_of(result, ends["requests"].here.pid).rates.min_rtt_ms < 60
    (reads,) = group_of(result, ends["slow reader"].there.pid).judged
    assert max(look.recv_queue for look in reads.connection.samples) > 16384, (
        "it is short before the window opens again"
    )


def test_only_harm_is_a_finding(seen):
    """A slow line, a slow server and a paced writer are no warning. A program that has stopped reading is one."""
    _, result, _ = seen
    harmful = {one.code for one in result.findings if one.severity != "note"}
    assert harmful == {"tcp-application-does-not-read", "tcp-mtu-black-hole"}


def test_clean_line_at_full_speed():
    """A writer and a reader that keep up over a line without loss: the line sets the pace, and nothing is found."""
    with staged(Case(VETH, WRITES, READS, FULL_SPEED, RECEIVES)) as ends:
        time.sleep(0.3)
        result = look(ends.here.pid, ends.there.pid, window_s=1)
    # Where the kernel takes the data as fast as the program gives it, the program sets the pace.
    assert group_of(result, ends.here.pid).verdict in {*FULL_SPEED, verdicts.WRITER_HERE}
    assert group_of(result, ends.there.pid).verdict in RECEIVES
    assert [one for one in result.findings if one.severity != "note"] == []


def test_loss():
    """The loss is within 0.2 points of what the line dropped, also where the server sends. Lost acknowledgements are no loss of data."""
    loses, confirms = {"delay_ms": 10, "loss": 0.02, "rate": 5e6}, {"delay_ms": 10, "loss": 0.01}
    upload = Case({"forth": loses, "back": confirms}, WRITES, READS, set(), set())
    download = Case({"forth": confirms, "back": loses}, READS, WRITES, set(), set())
    with staged(upload, 7000) as up, staged(download, 7001) as down:
        ends = ((up, up.here, up.there, 0), (down, down.there, down.here, 1))
        time.sleep(0.7)
        before = [each.line.carried() for each, *_ in ends]
        result = look(*(program.pid for _, *pair, _ in ends for program in pair), window_s=1.5)
        truth = [netlab.loss(first, each.line.carried(), way) for first, (each, *_, way) in zip(before, ends)]
    for (_, sender, receiver, _), lost in zip(ends, truth):
        sends, receives = group_of(result, sender.pid), group_of(result, receiver.pid)
        assert sends.verdict == verdicts.LOSS
        assert sends.rates.loss == pytest.approx(lost, abs=0.002)
        assert receives.verdict in {*RECEIVES, verdicts.LOSS}
        assert receives.rates.out_of_order > 0.01
    assert [one.severity for one in result.findings if one.code == "tcp-network-loses"] == ["warning", "warning"]


def test_group_of_connections(seen):
    """Connections to one port are one group with one sentence; its shares are those of all."""
    ends, result, totals = seen
    group, truth = group_of(result, ends["20 connections"].here.pid), netlab.shares(*totals["20 connections"])
    assert (group.command, len(group.judged), group.verdict) == ("orders", 20, verdicts.REQUESTS)
    assert tuple(group.shares) == pytest.approx((truth.server, truth.line, truth.client), abs=0.05)
    assert dict(group.verdicts) == {verdicts.REQUESTS: 20}
