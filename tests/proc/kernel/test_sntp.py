"""Real exchanges with servers on the loopback device: right, wrong, forged, refused, none."""

from __future__ import annotations

import _socket
import os
import socket
import time

import ntpserver
import pytest

from opskit.proc.kernel import sntp
from opskit.proc.kernel.sntp import NoAnswer, ask_server


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("offset_s", [0.0, 25200.123, -0.25])
def test_the_offset_is_exact_to_a_millisecond(host, offset_s):
    """The best of four: within half of its round trip, and a millisecond, on a machine that is not stopped."""
    for _ in range(5):
        with ntpserver.right(offset_s, host) as (port, requests):
            found = ask_server(host, port)
        assert abs(found.offset_s - offset_s) <= found.delay_s / 2 + 1e-4
        assert (found.replies, len(requests), found.address) == (4, 4, host)
        if abs(found.offset_s - offset_s) <= 0.001:
            return
    pytest.fail(f"{found}")


def test_each_request_has_another_random_number():
    """Nobody can guess the next."""
    with ntpserver.right() as (port, requests):
        ask_server("127.0.0.1", port)
    assert len({request[40:48] for request in requests}) == 4


def test_a_forged_reply_is_passed_over():
    """A wrong random number, from the address of the server; the right reply comes after it."""

    def forged(request):
        wrong = bytes(byte ^ 0xFF for byte in request[40:48])
        return [ntpserver.reply(request, 9999.0, origin=wrong), b"short", ntpserver.reply(request, 1.0)]

    with ntpserver.serving(forged) as (port, _):
        found = ask_server("127.0.0.1", port)
    assert found.offset_s == pytest.approx(1.0, abs=found.delay_s / 2 + 0.001)


def test_a_reply_from_elsewhere_never_arrives(monkeypatch):
    """The socket is connected: the kernel drops what another port sends, with the right number too."""
    monkeypatch.setattr(sntp, "_TIMEOUT_S", 0.2)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        peers = []
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.bind(("127.0.0.1", 0))

            def serve():
                for _ in range(2):
                    data, peer = server.recvfrom(100)
                    peers.append(peer)
                    other.sendto(ntpserver.reply(data, 9999.0), peer)

            import threading

            thread = threading.Thread(target=serve)
            thread.start()
            with pytest.raises(NoAnswer, match=r"no reply within 0\.2 s"):
                ask_server("127.0.0.1", server.getsockname()[1])
            thread.join()
    assert len(peers) == 2


def test_one_lost_reply_of_four():
    """The others count."""
    seen = []

    def lossy(request):
        seen.append(request)
        return [] if len(seen) == 2 else [ntpserver.reply(request, 5.0)]

    with ntpserver.serving(lossy) as (port, _):
        found = ask_server("127.0.0.1", port)
    assert found.replies == 3
    assert found.offset_s == pytest.approx(5.0, abs=found.delay_s / 2 + 0.001)


def test_a_refusal_ends_the_questions():
    """One request, not four."""
    with ntpserver.right(stratum=0, reference=b"RATE") as (port, requests):
        assert ask_server("127.0.0.1", port).reply.refusal == "RATE"
    assert len(requests) == 1


def test_nothing_listens():
    """The kernel refuses at once."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    begun = time.monotonic()
    with pytest.raises(NoAnswer, match="connection refused"):
        ask_server("127.0.0.1", port)
    assert time.monotonic() - begun < 30


def resolved_to(*places):
    """What getaddrinfo(3) gives for a name with these addresses."""
    return lambda *_: [
        (socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM, 17, "", (host, port))
        for host, port in places
    ]


def test_a_server_on_its_second_address_only(monkeypatch):
    """`localhost` is ::1 and 127.0.0.1: the first address of each family is asked, and the first one's problem told."""
    with ntpserver.right(2.0) as (port, _):
        monkeypatch.setattr(_socket, "getaddrinfo", resolved_to(("::1", port), ("::1", port), ("127.0.0.1", port)))
        assert ask_server("both", port).address == "127.0.0.1"
    monkeypatch.setattr(_socket, "getaddrinfo", resolved_to(("::1", port), ("127.0.0.1", 0)))
    with pytest.raises(NoAnswer, match="connection refused"):
        ask_server("both", port)


def test_a_name_server_that_is_silent_costs_a_second(monkeypatch):
    """Glibc reads it when it resolves; what the user has set there counts more."""
    monkeypatch.setattr(_socket, "getaddrinfo", resolved_to())
    for given, expected in ((None, "timeout:1 attempts:1"), ("timeout:3", "timeout:3")):
        monkeypatch.delenv("RES_OPTIONS", raising=False)
        if given is not None:
            monkeypatch.setenv("RES_OPTIONS", given)
        with pytest.raises(NoAnswer, match="it has no address"):
            ask_server("none")
        assert os.environ["RES_OPTIONS"] == expected


@pytest.mark.parametrize("name", ["no such host", "a..b", "\udcff", "x" * 200])
def test_a_name_that_is_none(name):
    """No exception of the resolver's."""
    with pytest.raises(NoAnswer, match="not resolved"):
        ask_server(name)
