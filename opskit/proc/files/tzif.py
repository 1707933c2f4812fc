"""Files of time zones (RFC 8536, tzfile(5)): offsets from UTC between transitions, and the rule for the time after the last one.

TZif2, counts, data with times of 4 bytes; the same with times of 8 bytes; CET-1CEST,M3.5.0,M10.5.0/3
"""

from __future__ import annotations

import struct
from bisect import bisect_right

from opskit.errors import BadInput
from opskit.records import NamedTuple

_HEADER = struct.Struct(">4sc15x6L")
_MAGIC = b"TZif"
_LONGEST_RULE = 200


class ZoneFile(NamedTuple):
    """`offsets_s`: after each of `times` (seconds since 1970); `first_s`: before; `rule`: as of TZ, empty where there is none."""

    times: tuple[int, ...]
    offsets_s: tuple[int, ...]
    first_s: int
    rule: str

    def offset_at(self, time_s: float) -> int | None:
        """The offset in seconds; None: after the last transition the rule decides."""
        place = bisect_right(self.times, time_s)
        if place == len(self.times) and self.rule:
            return None
        return self.offsets_s[place - 1] if place else self.first_s


def parse_zone_file(data: bytes) -> ZoneFile:
    """Parse the last part of the file. Raises BadInput."""
    try:
        version, counts = _header(data, 0)
        at, width = _HEADER.size, 4
        if version >= b"2":
            at += _size(counts, width)
            _, counts = _header(data, at)
            at, width = at + _HEADER.size, 8
        return _part(data, at, width, counts)
    except (struct.error, IndexError):
        raise BadInput("zone file", "cut or damaged") from None


def _header(data: bytes, at: int) -> tuple[bytes, tuple[int, ...]]:
    magic, version, *counts = _HEADER.unpack_from(data, at)
    if magic != _MAGIC or sum(counts) > len(data):
        raise BadInput("zone file", "no `TZif`, or more entries than bytes")
    return version, tuple(counts)


def _size(counts: tuple[int, ...], width: int) -> int:
    universal, standard, leaps, times, types, characters = counts
    return times * (width + 1) + types * 6 + characters + leaps * (width + 4) + standard + universal


def _part(data: bytes, at: int, width: int, counts: tuple[int, ...]) -> ZoneFile:
    times, types = counts[3], counts[4]
    moments = struct.unpack_from(f">{times}{'q' if width == 8 else 'l'}", data, at)
    kinds_at = at + times * width
    kinds = struct.unpack_from(f">{times}B", data, kinds_at)
    offsets = [struct.unpack_from(">l", data, kinds_at + times + 6 * number)[0] for number in range(types)]
    rule = data[at + _size(counts, width) :].split(b"\n", 2)[1:2] if width == 8 else []
    return ZoneFile(
        moments,
        tuple(offsets[kind] for kind in kinds),
        offsets[0],
        b"".join(rule)[:_LONGEST_RULE].decode("ascii", "replace"),
    )
