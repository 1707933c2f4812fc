"""A time server for the tests, in a thread: right, wrong by some seconds, refusing, silent, forging."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UNIX_S = 2_208_988_800


def stamp(unix_ns: int) -> bytes:
    """An NTP timestamp."""
    return struct.pack("!Q", (((unix_ns + UNIX_S * 10**9) << 32) // 10**9) % (1 << 64))


def reply(request: bytes, offset_s: float = 0.0, *, leap=0, stratum=2, mode=4, reference=b"\x7f\0\0\1", origin=None,
          root_delay_s=0.0, root_dispersion_s=0.0) -> bytes:  # fmt: skip
    """The reply of a server whose clock is `offset_s` ahead."""
    now = stamp(time.time_ns() + round(offset_s * 1e9))
    head = struct.pack(
        "!BBbbII4s",
        leap << 6 | 4 << 3 | mode,
        stratum,
        6,
        -20,
        int(root_delay_s * 65536),
        int(root_dispersion_s * 65536),
        reference,
    )
    return (
        head
        + now
        + (request[40:48] if origin is None else origin)
        + now
        + stamp(time.time_ns() + round(offset_s * 1e9))
    )


@contextlib.contextmanager
def serving(answer: Callable[[bytes], list[bytes]], host: str = "127.0.0.1") -> Iterator[tuple[int, list[bytes]]]:
    """A server that sends these packets for each request: its port, and the requests that have come."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    requests: list[bytes] = []
    with socket.socket(family, socket.SOCK_DGRAM) as server:
        server.bind((host, 0))
        port = server.getsockname()[1]

        def serve() -> None:
            while True:
                data, peer = server.recvfrom(2048)
                if data == b"end":
                    return
                requests.append(data)
                for packet in answer(data):
                    server.sendto(packet, peer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield port, requests
        finally:
            with socket.socket(family, socket.SOCK_DGRAM) as ending:
                ending.sendto(b"end", (host, port))
            thread.join()


def right(
    offset_s: float = 0.0, host: str = "127.0.0.1", **how: object
) -> contextlib.AbstractContextManager[tuple[int, list[bytes]]]:
    """A server that answers each request."""
    return serving(lambda request: [reply(request, offset_s, **how)], host)
