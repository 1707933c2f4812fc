"""Healthy busy programs get no finding from `opskit tcp`: readers, servers, pools, and programs that wait by design."""

from __future__ import annotations

import time

import netlab
import pytest
from netcases import group_of, look, symmetric

from opskit.analysis.tcp import result as verdicts

# Programs that talk side by side over one line: the one that listens, the one that connects, and the verdicts of both that are right.
STREAM = {verdicts.WRITER_HERE, verdicts.WRITER_THERE}
TALK = {verdicts.REQUESTS, verdicts.IDLE}
TOGETHER = {
    "130 MB/s": ({"action": "read"}, {"action": "write", "rate": 130e6}, STREAM),
    "reader in batches": ({"action": "batches", "tick_s": 0.1}, {"action": "write", "rate": 5e6}, STREAM),
    "writer in bursts": ({"action": "read"}, {"action": "write", "rate": 5e6, "tick_s": 0.5}, STREAM),
    "heartbeats": ({"action": "serve", "size": 20, "answer": 20}, {"action": "ask", "size": 20, "answer": 20, "think_ms": 700}, TALK),
    "long poll": ({"action": "serve", "think_ms": 20_000}, {"action": "ask"}, TALK),
    "pool": ({"action": "hold", "connections": 30}, {"action": "hold", "connections": 30}, {verdicts.IDLE}),
    "large answers": ({"action": "serve", "answer": 300_000}, {"action": "ask", "answer": 300_000, "think_ms": 20}, TALK),
    "new connections": ({"action": "serve", "connections": 0}, {"action": "ask", "again": True, "think_ms": 5}, {*TALK, verdicts.UNKNOWN}),
}  # fmt: skip


@pytest.fixture(scope="module")
def together():
    """All of them, and clients that are far away: the PIDs of each, and the result of one window."""
    far = symmetric(75, jitter_ms=10, loss=0.001)
    with netlab.line(veth=True) as line, netlab.line(**far) as long_line:
        pids = {}
        for port, (name, (server, client, _)) in enumerate(TOGETHER.items(), 7000):
            listens = line.there(**server, listen=port)
            pids[name] = (listens.pid, line.here(**client, connect=port).pid)
        server = long_line.there("serve", listen=6000, connections=50, think_ms=5, answer=8000)
        client = long_line.here("ask", connect=6000, connections=50, think_ms=50, answer=8000)
        pids["far"] = (server.pid, client.pid)
        time.sleep(1)
        yield pids, look(*_pids(pids))


def _pids(pairs):
    return [pid for pair in pairs.values() for pid in pair]


@pytest.mark.parametrize("name", TOGETHER)
def test_verdict(together, name):
    """Either end of a healthy program is described, without blame."""
    pids, result = together
    groups = [group for group in result.groups if {*group.pids} & {*pids[name]}]
    assert len(groups) == 2 or name == "new connections"  # none may be open when the window ends
    assert {group.verdict for group in groups} <= TOGETHER[name][2]


def test_no_finding(together):
    """None of them is a warning."""
    assert [one for one in together[1].findings if one.severity != "note"] == []


def test_distant_clients(together):
    """Requests over a line of 150 ms that is sometimes late and loses one packet in 1,000: the network takes the time."""
    pids, result = together
    group = group_of(result, pids["far"][1])
    assert group.verdict == verdicts.REQUESTS
    assert group.shares.network > 0.6


def test_requests_at_full_speed():
    """Requests and answers without a pause, on one connection and on several, get no finding, and no shares on the first."""
    with netlab.line(veth=True) as line:
        programs = []
        for port, connections in ((7000, 1), (7001, 16)):
            programs.append(line.there("serve", listen=port, connections=connections))
            programs.append(line.here("ask", connect=port, connections=connections))
        time.sleep(0.3)
        result = look(*(each.pid for each in programs), window_s=1)
    assert {group_of(result, each.pid).verdict for each in programs} == {verdicts.REQUESTS}
    assert [group_of(result, each.pid).shares for each in programs[:2]] == [None, None], "they take no time"
    assert [one for one in result.findings if one.severity != "note"] == []
