"""Packets of SNTP, and the offset that an exchange shows (RFC 5905, RFC 4330). Pure.

bytes 0: leap indicator (2 bits), version (3), mode (3); 1: stratum; 4: root delay; 8: root dispersion; 12: reference id;
24: origin timestamp, a copy of the request's; 32: receive; 40: transmit. A timestamp has 32 bits of seconds since 1900 and
32 of their fraction; it wraps in 2036.
"""

from __future__ import annotations

import struct

from opskit.records import NamedTuple

PACKET_BYTES, PORT = 48, 123
_UNIX_S = 2_208_988_800  # 1970 in seconds since 1900
_ERA, _HALF_ERA = 1 << 64, 1 << 63
_CLIENT = 0x23  # no warning, version 4, client
_SERVER_MODE, _ALARM, _MOST_STRATUM = 4, 3, 15
_HEADER = struct.Struct("!BBbbII4sQQQQ")
_SHORT = 1 << 16
_MOST_DISTANCE_S = 16.0  # RFC 5905, MAXDISP


class Reply(NamedTuple):
    """A reply to our request, of a right form. Timestamps in units of 2**-32 s."""

    leap: int
    stratum: int
    root_delay_s: float
    root_dispersion_s: float
    reference: bytes
    received: int
    sent: int

    @property
    def refusal(self) -> str | None:
        """The code of a kiss-o'-death: RATE, DENY or RSTR; None: it is none."""
        return self.reference.rstrip(b"\0").decode("ascii", "replace") if self.stratum == 0 else None

    @property
    def why_unusable(self) -> str | None:
        """Why its time proves nothing; None: it says that it is synchronised."""
        if self.leap == _ALARM:
            return "it says that its own clock is not synchronised (leap indicator 3)"
        if not 0 < self.stratum <= _MOST_STRATUM:
            return f"its stratum {self.stratum} means not synchronised"
        if self.root_delay_s / 2 + self.root_dispersion_s >= _MOST_DISTANCE_S:
            return f"it is {self.root_delay_s / 2 + self.root_dispersion_s:.0f} s or more from its reference clock"
        return None


def request(cookie: int) -> bytes:
    """A request. The random `cookie` stands for our time, which a forged reply would have to guess (RFC 8915, 5.6)."""
    return _HEADER.pack(_CLIENT, 0, 0, 0, 0, 0, b"", 0, 0, 0, cookie)


def parse_reply(data: bytes, cookie: int) -> Reply | None:
    """The reply to the request with this cookie; None: it answers another one, or is no reply of a server."""
    if len(data) < PACKET_BYTES:
        return None
    first, stratum, _, _, delay, dispersion, reference, _, origin, received, sent = _HEADER.unpack_from(data)
    if origin != cookie or first & 7 != _SERVER_MODE:
        return None
    if stratum and not (received and sent):
        return None
    return Reply(first >> 6, stratum, delay / _SHORT, dispersion / _SHORT, reference, received, sent)


def timestamp(unix_ns: int) -> int:
    """A time since 1970 as an NTP timestamp."""
    return ((unix_ns + _UNIX_S * 10**9) << 32) // 10**9 % _ERA


def offset_s(asked_ns: int, took_ns: int, reply: Reply) -> tuple[float, float]:
    """(how far the server's clock is ahead of ours, round trip time). Right within half of the round trip.

    `asked_ns`: when we sent by our clock; `took_ns`: until the reply, by a clock that nobody sets. Up to 68 years.
    """
    there = _difference(reply.received, timestamp(asked_ns)) + _difference(reply.sent, timestamp(asked_ns + took_ns))
    within = _difference(reply.sent, reply.received)
    return there / 2 / 2**32, max(took_ns / 1e9 - within / 2**32, 0.0)


def _difference(one: int, other: int) -> int:
    return (one - other + _HALF_ERA) % _ERA - _HALF_ERA
