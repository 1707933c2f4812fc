"""Ask a time server that the user names by SNTP: four requests at most, each for a second; by IPv6 and by IPv4 where it has both."""

from __future__ import annotations

import _socket  # `socket` turns every number into an enum, which costs milliseconds of start-up
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opskit.proc.sntp import PORT, offset_s, parse_reply, request
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.proc.sntp import Reply

_REQUESTS, _TIMEOUT_S = 4, 1.0
_MOST_STRAY = 100  # replies to others' questions that are passed over
_LARGEST_BYTES = 2048


class Exchange(NamedTuple):
    """The best of the exchanges. `offset_s`: how far the server is ahead of us; `delay_s`: the round trip."""

    address: str
    offset_s: float
    delay_s: float
    reply: Reply
    replies: int


class NoAnswer(Exception):  # noqa: N818
    """Why there is no answer, as a clause."""


def ask_server(host: str, port: int = PORT) -> Exchange:
    """Ask up to four times; the exchange with the shortest round trip. Raises NoAnswer.

    Where the first address does not answer, the first one of the other family is asked: `localhost` may be ::1 and 127.0.0.1.
    """
    problem: NoAnswer | None = None
    for family, place in _places(host, port):
        try:
            return _ask_address(family, place, port)
        except NoAnswer as error:
            problem = problem or error
    raise problem or NoAnswer("it has no address")


def _places(host: str, port: int) -> list[tuple[int, tuple[object, ...]]]:
    """The first address of each family, the preferred one first. Raises NoAnswer."""
    # glibc waits 5 s for each name server, twice, and Ctrl-C cannot end that.
    os.environ.setdefault("RES_OPTIONS", "timeout:1 attempts:1")
    try:
        found = _socket.getaddrinfo(host, port, 0, _socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise NoAnswer(f"its name was not resolved: {getattr(error, 'strerror', None) or error}") from None
    firsts: dict[int, tuple[object, ...]] = {}
    for family, _, _, _, place in found:
        firsts.setdefault(family, place)
    return [*firsts.items()]


def _ask_address(family: int, place: tuple[object, ...], port: int) -> Exchange:
    """The socket is connected, so that the kernel drops what comes from elsewhere. A refusal (kiss-o'-death) is kept, and ends the questions."""
    best: Exchange | None = None
    with _connected(family, place) as asked:
        replies = 0
        for number in range(_REQUESTS):
            try:
                found = _ask_once(asked)
            except NoAnswer:
                if best is None:
                    raise
                break
            if found is None:
                if number and not replies:
                    break  # two were lost: nobody answers
                continue
            replies += 1
            offset, delay, reply = found
            if best is None or delay < best.delay_s:
                best = Exchange(str(place[0]), offset, delay, reply, replies)
            if reply.stratum == 0:
                return Exchange(str(place[0]), offset, delay, reply, replies)
    if best is None:
        raise NoAnswer(f"no reply within {_TIMEOUT_S:g} s; is UDP port {port} open, and does an NTP server run there?")
    return best._replace(replies=replies)


@contextmanager
def _connected(family: int, place: tuple[object, ...]) -> Iterator[_socket.socket]:
    """A UDP socket to an address. Raises NoAnswer where there is no route to it."""
    made = None
    try:
        try:
            made = _socket.socket(family, _socket.SOCK_DGRAM | _socket.SOCK_CLOEXEC)
            made.connect(place)
        except OSError as error:
            raise NoAnswer(f"no connection: {error.strerror}") from None
        yield made
    finally:
        if made is not None:
            made.close()


def _ask_once(asked: _socket.socket) -> tuple[float, float, Reply] | None:
    """(offset, round trip, reply); None without a reply to this very request. Raises NoAnswer for an error of the network."""
    cookie = int.from_bytes(os.urandom(8), "big") | 1
    deadline = time.monotonic() + _TIMEOUT_S
    try:
        begun_ns, asked_ns = time.monotonic_ns(), time.time_ns()
        asked.send(request(cookie))
        for _ in range(_MOST_STRAY):
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return None
            asked.settimeout(left_s)
            data = asked.recv(_LARGEST_BYTES)
            took_ns = time.monotonic_ns() - begun_ns
            reply = parse_reply(data, cookie)
            if reply is not None:
                return (*offset_s(asked_ns, took_ns, reply), reply)
    except _socket.timeout:
        return None
    except OSError as error:
        raise NoAnswer(_why(error)) from None
    return None


def _why(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused: nothing listens on that UDP port"
    return str(error.strerror or error)
