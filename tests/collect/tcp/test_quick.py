"""The quick look at TCP: a queue that is full, an application that does not read, and connections at rest."""

from __future__ import annotations

import contextlib
import os
import socket
import time

import pytest
from nextsteps import try_next

from opskit.checks.look import Look
from opskit.checks.tcp import check
from opskit.host import Host


def full(sender):
    """Send until nothing more is taken."""
    sender.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            sender.send(bytes(65536))


@pytest.fixture(scope="module")
def staged():
    """The findings by the port of each socket, with the ports."""
    with contextlib.ExitStack() as stack:

        def listening(backlog):
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=backlog))
            return server, server.getsockname()[1]

        def connected(server):
            client = stack.enter_context(socket.create_connection(server.getsockname()))
            return client, stack.enter_context(server.accept()[0])

        queue, crowded = listening(1)
        for _ in range(6):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(queue.getsockname())
        server, unread = listening(8)
        full(connected(server)[0])  # a request that the server does not read
        pager, slow = listening(8)
        full(connected(pager)[1])  # an answer that the client takes its time for
        idle, resting = listening(64)
        pool = [connected(idle) for _ in range(40)]
        pool += [connected(idle) for _ in range(20)]
        time.sleep(0.05)
        outcome = check(Look(Host.at(None, None)))
        yield outcome, {"crowded": crowded, "unread": unread, "slow": slow, "resting": resting}


def of(staged, name):
    """The findings about the sockets of one port."""
    outcome, ports = staged
    port = str(ports[name])
    return [each for each in outcome.findings if port in str(each.entity.id).replace(":", " ").split()]


def test_a_full_accept_queue(staged):
    """An error with the process that does not accept, which a scan found for this finding."""
    findings = of(staged, "crowded")
    [one] = findings
    assert (one.code, one.entity.inside.id) == ("tcp-listen-queue-full", os.getpid())
    assert one.severity in ("error", "warning")  # an error where a client tried again within the window
    assert one.entity.inside.start_ticks
    try_next(findings, "tcp-listen-queue-full")


def test_a_server_that_does_not_read(staged):
    """A warning; a client that does not read is a note, as a pager does not."""
    [one] = of(staged, "unread")
    assert (one.code, one.severity) == ("tcp-application-does-not-read", "warning")
    assert [each.severity for each in of(staged, "slow") if each.code == "tcp-application-does-not-read"] == ["note"]
    assert not [each for each in of(staged, "slow") if each.severity == "error"]


def test_connections_at_rest(staged):
    """A pool of idle connections is no finding; all sockets were looked at."""
    outcome, _ = staged
    assert of(staged, "resting") == []
    assert outcome.looked_at[0].endswith("TCP sockets")
