r"""The stamps that HotSpot writes before a line of its logs.

    2017-03-05T07:46:46.551-0500: 4.097: …                      JDK 6-8: -XX:+PrintGCDateStamps, -XX:+PrintGCTimeStamps
    366,174: …                                                  the same under a locale with decimal commas
    [2022-01-29T16:34:51.655+0000][246ms][info][safepoint   ]   JDK 9 and later: any of -Xlog's decorations, in this order:
                                                                time, utctime, uptime, timemillis, uptimemillis, timenanos,
                                                                uptimenanos, hostname, pid, tid, level, tags

What a log shipper wrote before them (syslog, docker) does not disturb. Source: HotSpot's logDecorators.hpp, logDecorations.cpp.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Sequence

# Numbers are as long as 64 bits make them: what is longer is no stamp.
_DATE = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d):(\d\d(?:[.,]\d{1,19})?)(?!\d|[.,]\d)(Z|[+-]\d\d:?\d\d)?")
_SECONDS = re.compile(rb"\[ *(\d{1,12}[.,]\d{1,19})s *\]")
_MILLIS = re.compile(rb"\[ *(\d{1,19})ms *\]")
_NANOS = re.compile(rb"\[ *(\d{1,19})ns *\]")
# At the beginning, after what a shipper wrote (a blank, a quote of its JSON), or after the file or line that grep put there.
_LEGACY = re.compile(rb"(?:^|[\s*\"]|^[^\s:]+:)(\d{1,12}[.,]\d{3}): ")
_ALONE = re.compile(rb"\d{1,12}\.\d{3}: ")
_PLAIN = re.compile(rb"[\d.]+")
_LONGEST = 32  # bytes of an uptime
_EPOCH_MS = 10**11  # timemillis is beyond it since 1973; no JVM is up for three years of milliseconds
_LAST_MS = 253_402_300_800_000  # the year 10000


class Stamp(NamedTuple):
    """When a line was written.

    `text`: the date as the log has it, "" where there is none. `utc_s`: seconds since the epoch (a date without a zone is
    taken as UTC). `local_s`: the same with the zone left out of account. `uptime_s`: seconds since the JVM started.
    None: the log does not say.
    """

    text: str
    utc_s: float | None
    local_s: float | None
    uptime_s: float | None


UNSTAMPED = Stamp("", None, None, None)


def _seconds(number: bytes) -> float:
    """Of what one of the patterns has found, whose digits are few."""
    return float(number.replace(b",", b"."))  # a number


@lru_cache(maxsize=64)
def _minute_s(minute: bytes) -> float | None:
    try:
        found = datetime.strptime(minute.decode(), "%Y-%m-%dT%H:%M").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return found.timestamp()


@lru_cache(maxsize=64)
def _offset_s(zone: bytes) -> float:
    if zone in (b"", b"Z"):
        return 0.0
    sign = -1 if zone[:1] == b"-" else 1
    return sign * ((integer(zone[1:3]) or 0) * 3600 + (integer(zone[-2:]) or 0) * 60)


def _uptime_s(head: bytes) -> float | None:
    if found := _SECONDS.search(head):
        return _seconds(found[1])
    millis = list(map(int, _MILLIS.findall(head)))
    if millis and millis[-1] < _EPOCH_MS:
        return millis[-1] / 1e3
    if nanos := list(map(int, _NANOS.findall(head))):
        return nanos[-1] / 1e9
    found = _LEGACY.search(head)
    return _seconds(found[1]) if found else None


def parse_stamp(head: bytes) -> Stamp:
    """The stamps in what stands before a line's own text; UNSTAMPED where there are none."""
    date = _DATE.search(head)
    if date is not None:
        minute = _minute_s(date[1])
        if minute is not None:
            local = minute + _seconds(date[2])
            return Stamp(date[0].decode(), local - _offset_s(date[3] or b""), local, _uptime_s(head))
    for millis in map(int, _MILLIS.findall(head)):
        if _EPOCH_MS <= millis < _LAST_MS:
            seconds = millis / 1e3
            text = (datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=millis)).strftime(
                "%Y-%m-%dT%H:%M:%S.%f"
            )[:-3] + "+0000"
            return Stamp(text, seconds, seconds, _uptime_s(head))
    uptime = _uptime_s(head)
    return UNSTAMPED if uptime is None else Stamp("", None, None, uptime)


def uptimes_s(heads: Sequence[bytes]) -> list[float]:
    """The uptimes of many heads, without those that have none: by their common shape, or one by one."""
    if not heads:
        return []
    first = heads[0]
    words: list[bytes] | None = None
    if _ALONE.fullmatch(first):
        words = b"".join(heads).split(b": ")
        if len(words) != len(heads) + 1 or words.pop():
            words = None
    match = _SECONDS.search(first) or _LEGACY.search(first)
    if words is None and match is not None and match.start(1) <= 1:  # nothing before it whose width may change
        start, end = match.start(1), first[match.end(1) : match.end(1) + 1]
        try:
            words = [head[start : head.index(end, start)] for head in heads]
        except ValueError:  # another shape
            pass
    # Numbers and nothing else: float() takes much that is no uptime.
    if words is not None and _PLAIN.fullmatch(b"".join(words)) and max(map(len, words)) <= _LONGEST:
        try:
            return list(map(float, words))
        except ValueError:
            pass
    return [uptime for uptime in map(_uptime_s, heads) if uptime is not None]


def first_stamp(text: bytes) -> Stamp:
    """The first stamp in the beginning of a log; UNSTAMPED where there is none."""
    for line in text.splitlines():
        stamp = parse_stamp(line)
        if stamp is not UNSTAMPED:
            return stamp
    return UNSTAMPED
