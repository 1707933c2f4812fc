"""opskit.analysis.tcp.quick: a connection whose both ends are on this machine."""

from __future__ import annotations

import pytest

from opskit.analysis.finding import Entity, Finding
from opskit.analysis.tcp.quick import _once


def end(code, place, pid):
    inside = None if pid is None else Entity("process", pid, 7)
    return Finding(code, "warning", Entity("socket", place, None, inside), "said", "read", next=f"opskit tcp {pid}")


CLIENT = end("tcp-peer-does-not-read", "127.0.0.1:5432", 9)


@pytest.mark.parametrize(
    ("client", "place"),
    [("127.0.0.1:5432", "5432 from 127.0.0.1"), ("[::1]:5432", "5432 from ::1")],
    ids=["IPv4", "IPv6"],
)
def test_a_local_server_that_does_not_read_is_told_once(client, place):
    """With who it is, and what to look at: the server."""
    found = _once([end("tcp-peer-does-not-read", client, 9), end("tcp-application-does-not-read", place, 18)])
    assert [(each.code, each.summary, each.next) for each in found] == [
        ("tcp-peer-does-not-read", "said; the peer is 18 on this machine", "opskit tcp 18")
    ]
    assert found[0].waits_for.id == 18


def test_other_connections_are_told_each():
    """Another port, another address, or an owner that is not known."""
    for other in (
        end("tcp-application-does-not-read", "5433 from 127.0.0.1", 18), end("tcp-application-does-not-read", "5432 from 10.0.0.9", 18),
        end("tcp-application-does-not-read", "5432 from 127.0.0.1", None),
    ):  # fmt: skip
        assert _once([CLIENT, other]) == [CLIENT, other]
