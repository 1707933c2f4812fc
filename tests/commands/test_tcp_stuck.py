"""`opskit tcp` where nothing moves any more: a server that accepts nobody, one that was stopped, and a peer that is gone."""

from __future__ import annotations

import os
import signal
import sys
import time

import netlab
from atonce import AtOnce
from netcases import VETH, group_of, look

from opskit.analysis.tcp import result as verdicts
from opskit.analysis.tcp.words import sentence

at_once = AtOnce()
outcomes = at_once.fixture()


def codes(result):
    return {finding.code for finding in result.findings if finding.severity != "note"}


@at_once.test
def test_a_server_that_accepts_nobody():
    """Requests wait in connections that no process has: the server does not read."""
    with netlab.line(**VETH) as line:
        server = line.there("serve", listen=7000, accept=False)
        client = line.here("ask", connect=7000, connections=3)
        time.sleep(0.3)
        there = look(server.pid, window_s=0.2)
        here = look(client.pid, window_s=0.2)
        command = (sys.executable, "-m", "opskit", "tcp", "-i", "1.2", "-f", "text")
        space = line.run(1, *command)
    assert group_of(here, client.pid).verdict == verdicts.IDLE
    assert "our last message" not in sentence(group_of(here, client.pid)), "no answer ever came: none may be due"
    assert not there.groups, "no process has them"
    assert ":7000 (3 connections): this application does not read: 600 B wait" in space.stdout, space
    assert "it has not accepted the connection" in space.stdout
    assert "tcp-application-does-not-read" in space.stdout
    assert space.returncode == 1


@at_once.test
def test_a_server_that_was_stopped():
    """What its clients send is not read, and they have no answer."""
    with netlab.line(**VETH) as line:
        server = line.there("read", listen=7000, rate=20_000)
        client = line.here("write", connect=7000, rate=20_000, name="orders")
        os.kill(server.pid, signal.SIGSTOP)
        time.sleep(0.3)
        result = look(server.pid, client.pid, window_s=1.2)
    reads, writes = group_of(result, server.pid), group_of(result, client.pid)
    assert reads.verdict == verdicts.READER_HERE
    assert "does not read: " in sentence(reads)
    assert writes.verdict == verdicts.WRITER_HERE, "its buffers still have room"
    assert codes(result) == {"tcp-application-does-not-read"}


@at_once.test
def test_a_peer_that_is_gone():
    """Its interface is down: requests are sent again and again. To a client that is gone it is no finding."""
    with netlab.line(**VETH) as line:
        server = line.there("serve", listen=7000)
        client = line.here("ask", connect=7000, think_ms=5, name="orders")
        time.sleep(0.3)
        assert line.run(1, "ip", "link", "set", "line", "down").returncode == 0
        for _ in range(
            40
        ):  # a retransmission that the interface refuses does not count: their number tells, not the time
            result = look(client.pid, server.pid, window_s=0.3)
            asks = group_of(result, client.pid)
            if asks.verdict == verdicts.UNANSWERED:
                break
    assert asks.verdict == verdicts.UNANSWERED
    assert "the peer does not answer: data was sent again" in sentence(asks)
    (finding,) = (each for each in result.findings if each.severity != "note" and each.code.startswith("tcp-peer"))
    assert (finding.code, finding.entity.inside.id) == ("tcp-peer-does-not-answer", client.pid)
