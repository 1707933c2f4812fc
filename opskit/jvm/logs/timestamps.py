r"""When something was logged: the stamps of HotSpot's logs, and dates, uptimes and PIDs in the text around a dump.

    2017-03-05T07:46:46.551-0500: 4.097: …                      JDK 6-8: -XX:+PrintGCDateStamps, -XX:+PrintGCTimeStamps
    366,174: …                                                  the same under a locale with decimal commas
    [2022-01-29T16:34:51.655+0000][246ms][info][safepoint   ]   JDK 9 and later: any of -Xlog's decorations, in this order:
                                                                time, utctime, uptime, timemillis, uptimemillis, timenanos,
                                                                uptimenanos, hostname, pid, tid, level, tags
    2016-09-13T06:54:06.773+0100: 11662.232: [Full GC 11662.233: [Class Histogram:
    Sat Nov 21 11:04:11 UTC 2026
    $ jmap -histo:live 88951
    histogram-4242-20261121T111338.276Z.txt

A log shipper (syslog, docker) may have written something before a stamp. Source: HotSpot's logDecorations.cpp.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import TYPE_CHECKING

from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# A number that does not fit in 64 bits is not a stamp.
_DATE = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d):(\d\d(?:[.,]\d{1,19})?)(?!\d|[.,]\d)(Z|[+-]\d\d:?\d\d)?")
_SECONDS = re.compile(rb"\[ *(\d{1,12}[.,]\d{1,19})s *\]")
_MILLIS = re.compile(rb"\[ *(\d{1,19})ms *\]")
_NANOS = re.compile(rb"\[ *(\d{1,19})ns *\]")
# At the beginning, after what a shipper wrote (a blank, a quote of its JSON), or after the file or line that grep put there.
_LEGACY = re.compile(rb"(?:^|[\s*\"]|^[^\s:]+:)(\d{1,12}[.,]\d{3}): ")
_ALONE = re.compile(rb"\d{1,12}\.\d{3}: ")
_PLAIN = re.compile(rb"[\d.]+")
_LONGEST = 32  # bytes of an uptime
_EPOCH_MS = 10**11  # as a date it is in 1973, as an uptime it is three years: larger numbers are dates
_LAST_MS = 253_402_300_800_000  # the year 10000
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

# In free text. Compiled where a dump has text around it.
_ANY_DATE = rb"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)[T _-](\d\d):?(\d\d):?([0-5]\d(?:[.,]\d{1,9})?) ?(Z|UTC|[+-]\d\d:?\d\d)?"
_UNIX_DATE = rb"[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d):([0-5]\d) (?:([A-Z][A-Za-z+\d-]{1,5}) )?(\d{4})"
_MONTHS = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
_ANY_UPTIME = rb"(?:\[(\d{1,12}[.,]\d{3})s\]|(?<![\d.:,])(\d{1,12}[.,]\d{3}): ?\[)"
_PID = rb"\b(?:jmap|jcmd)\b(?:(?!\b(?:jmap|jcmd)\b)[^\n|;])*?\s(\d+)\b|^(\d+):\s*$"


class Stamp(NamedTuple):
    """When something was written, and by which JVM; None: unknown.

    `time_s`: seconds since the epoch (a date without a zone is taken as UTC). `uptime_s`: seconds since the JVM started.
    `local_s`: as `time_s` with the zone left out. `text`: the date as written, "" without one.
    """

    time_s: float | None = None
    uptime_s: float | None = None
    pid: int | None = None
    local_s: float | None = None
    text: str = ""


UNSTAMPED = Stamp()


def parse_stamp(head: bytes) -> Stamp:
    """The stamps before a log line's own text; UNSTAMPED where there are none."""
    date = _DATE.search(head)
    if date is not None and (stamp := _dated(date[0], date[1], date[2], date[3], _uptime_s(head))) is not None:
        return stamp
    for millis in map(int, _MILLIS.findall(head)):
        if _EPOCH_MS <= millis < _LAST_MS:
            text = (EPOCH + timedelta(milliseconds=millis)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "+0000"
            return Stamp(millis / 1e3, _uptime_s(head), None, millis / 1e3, text)
    uptime = _uptime_s(head)
    return UNSTAMPED if uptime is None else Stamp(uptime_s=uptime)


def first_stamp(text: bytes) -> Stamp:
    """The first stamp in the beginning of a log; UNSTAMPED where there is none."""
    return next((stamp for stamp in map(parse_stamp, text.splitlines()) if stamp is not UNSTAMPED), UNSTAMPED)


def read_stamp(context: str) -> Stamp:
    """The last date, uptime and PID in a few lines of text."""
    data = context.encode("utf-8", "surrogateescape")
    found = _last(_ANY_UPTIME, data)
    uptime = seconds_in(found[1] or found[2]) if found else None
    pid = _last(_PID, data)
    stamp = _last_date(data, uptime) or Stamp(uptime_s=uptime)
    return stamp._replace(pid=integer(pid[1] or pid[2]) if pid else None)


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
        with suppress(ValueError):  # another shape
            words = [head[start : head.index(end, start)] for head in heads]
    # float() also accepts `inf` and `1_0`.
    if words is not None and _PLAIN.fullmatch(b"".join(words)) and max(map(len, words)) <= _LONGEST:
        with suppress(ValueError):
            return list(map(float, words))
    return [uptime for uptime in map(_uptime_s, heads) if uptime is not None]


def _dated(text: bytes, minute: bytes, second: bytes, zone: bytes | None, uptime_s: float | None) -> Stamp | None:
    """The stamp of a date; None for digits that are not a date, such as the 31st of February."""
    if (minute_s := _minute_s(minute)) is None:
        return None
    local_s = minute_s + seconds_in(second)
    return Stamp(local_s - _offset_s(zone or b""), uptime_s, None, local_s, text.decode())


def seconds_in(number: bytes) -> float:
    """A number that a pattern of few digits has found, with a point or a comma."""
    return float(number.replace(b",", b"."))  # a number


@lru_cache(maxsize=64)
def _minute_s(minute: bytes) -> float | None:
    try:
        return datetime.strptime(minute.decode(), "%Y-%m-%dT%H:%M").replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


@lru_cache(maxsize=64)
def _offset_s(zone: bytes) -> float:
    if zone in (b"", b"Z", b"UTC"):
        return 0.0
    sign = -1 if zone[:1] == b"-" else 1
    return sign * ((integer(zone[1:3]) or 0) * 3600 + (integer(zone[-2:]) or 0) * 60)


def _uptime_s(head: bytes) -> float | None:
    if found := _SECONDS.search(head):
        return seconds_in(found[1])
    millis = list(map(int, _MILLIS.findall(head)))
    if millis and millis[-1] < _EPOCH_MS:
        return millis[-1] / 1e3
    if nanos := list(map(int, _NANOS.findall(head))):
        return nanos[-1] / 1e9
    found = _LEGACY.search(head)
    return seconds_in(found[1]) if found else None


def _last(pattern: bytes, data: bytes) -> re.Match[bytes] | None:
    return max(re.finditer(pattern, data, re.MULTILINE), key=re.Match.start, default=None)


def _last_date(data: bytes, uptime_s: float | None) -> Stamp | None:
    iso, unix = _last(_ANY_DATE, data), _last(_UNIX_DATE, data)
    if iso and not (unix and unix.start() > iso.start()):
        return _dated(iso[0], b"%b-%b-%bT%b:%b" % iso.groups()[:5], iso[6], iso[7], uptime_s)
    if unix and unix[1] in _MONTHS:
        month = b"%02d" % (_MONTHS.index(unix[1]) + 1)
        minute = b"%b-%b-%bT%b" % (unix[6], month, unix[2].rjust(2, b"0"), unix[3])
        return _dated(unix[0], minute, unix[4], None, uptime_s)
    return None
