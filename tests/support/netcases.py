"""Staged TCP connections for the tests and benchmarks: what each end of them says."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import netlab

from opskit.analysis.tcp import result as verdicts
from opskit.analysis.tcp.judge import judge
from opskit.collect.tcp.collect import Collector
from opskit.collect.tcp.facts import Request
from opskit.host import Host

PORT = 7000
FULL_SPEED = {verdicts.BANDWIDTH, verdicts.QUEUEING}
# What a receiver sees of a sender that the network or the sender's own program holds back.
RECEIVES = {verdicts.WRITER_THERE, verdicts.BANDWIDTH, verdicts.UNKNOWN}


class Case(NamedTuple):
    """A line, the program that connects at its end here and the one that listens there, and the verdicts that are right at each."""

    line: dict
    here: dict
    there: dict
    here_says: set
    there_says: set


def symmetric(delay_ms: float, **forth) -> dict:
    """A line with this delay in each direction, and more of the way forth."""
    return {"forth": {"delay_ms": delay_ms, **forth}, "back": {"delay_ms": delay_ms}}


VETH = {"veth": True}
REQUESTS = {"action": "ask", "think_ms": 10}
ANSWERS = {"action": "serve", "think_ms": 100}
WRITES, READS = {"action": "write"}, {"action": "read"}
_HOLE = {"forth": {"delay_ms": 5}, "back": {"delay_ms": 5, "drop_above": 1400}}
_WAITS = {verdicts.IDLE, verdicts.UNKNOWN, verdicts.REQUESTS}
CASES = {
    "slow line": Case(symmetric(5, rate=500e3), WRITES, READS, FULL_SPEED, RECEIVES),
    "small send buffer": Case(symmetric(25), {**WRITES, "sndbuf": 8192}, READS, {verdicts.SEND_BUFFER}, RECEIVES),
    "slow reader": Case(VETH, WRITES, {**READS, "rate": 50e3}, {verdicts.READER_THERE}, {verdicts.READER_HERE}),
    "slow client": Case(
        VETH,
        {"action": "read", "rate": 50e3},
        {"action": "write"},
        {verdicts.READER_HERE},
        {verdicts.READER_THERE},
    ),
    "slow writer": Case(VETH, {**WRITES, "rate": 100e3}, READS, {verdicts.WRITER_HERE}, {verdicts.WRITER_THERE}),
    "requests": Case(symmetric(20), REQUESTS, ANSWERS, {verdicts.REQUESTS}, {verdicts.REQUESTS}),
    "20 connections": Case(
        symmetric(5), {**REQUESTS, "name": "orders", "connections": 20}, {**ANSWERS, "connections": 20},
        {verdicts.REQUESTS}, {verdicts.REQUESTS},
    ),
    "requests, IPv6": Case(
        symmetric(20), {**REQUESTS, "ipv6": True}, {**ANSWERS, "ipv6": True}, {verdicts.REQUESTS}, {verdicts.REQUESTS}
    ),
    "slow client program": Case(
        symmetric(2), {**REQUESTS, "think_ms": 80}, {**ANSWERS, "think_ms": 10}, {verdicts.REQUESTS}, {verdicts.REQUESTS}
    ),
    "long answers": Case(
        symmetric(10), {**REQUESTS, "think_ms": 20, "answer": 50_000}, {**ANSWERS, "think_ms": 50, "answer": 50_000},
        {verdicts.REQUESTS}, {verdicts.REQUESTS},
    ),
    "longest answers": Case(
        VETH, {**REQUESTS, "think_ms": 25, "answer": 300_000}, {**ANSWERS, "think_ms": 10, "answer": 300_000},
        {verdicts.REQUESTS}, {verdicts.REQUESTS},
    ),
    "small receive buffer": Case(
        symmetric(10), WRITES, {**READS, "rcvbuf": 32768}, {verdicts.PEER_WINDOW}, {verdicts.OWN_WINDOW}
    ),
    "black hole": Case(_HOLE, REQUESTS, {**ANSWERS, "answer": 3000}, _WAITS, {verdicts.BLACK_HOLE}),
    "black hole, long answers": Case(_HOLE, REQUESTS, {**ANSWERS, "answer": 20_000}, _WAITS, {verdicts.BLACK_HOLE}),
    "idle": Case(VETH, {"action": "hold"}, {"action": "hold"}, {verdicts.IDLE}, {verdicts.IDLE}),
}  # fmt: skip


class Ends(NamedTuple):
    """The programs of a case, and what they had done before and after the look."""

    line: netlab.Line
    here: netlab.Program
    there: netlab.Program

    def totals(self):
        return self.there.totals(), self.here.totals()


@contextlib.contextmanager
def staged(case, port=PORT):
    """The two programs of a case, talking over this port."""
    with netlab.line(**case.line) as line:
        server = line.there(**case.there, listen=port)
        yield Ends(line, line.here(**case.here, connect=port), server)


def look(*pids, **ask):
    """One window of the connections of these processes."""
    return judge(Collector(Host.at(None, None), Request(pids=tuple(pids), **ask)).look())


def group_of(result, pid):
    """The only group of connections of a process."""
    (found,) = (group for group in result.groups if pid in group.pids)
    return found
