"""When something in a log was written, and of which JVM it speaks, from the lines before it.

2016-09-13T06:54:06.773+0100: 11662.232: [Full GC 11662.233: [Class Histogram:
[2026-11-21T11:13:38.276+0000][0.117s][trace][gc,classhisto      ] GC(0)
Sat Nov 21 11:04:11 UTC 2026
$ jmap -histo:live 88951
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone

from opskit.quantities import decimal, integer, integers

_DATE = r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)[T _-](\d\d):?(\d\d):?(\d\d)(?:[.,](\d{1,9}))? ?(Z|UTC|[+-]\d\d:?\d\d)?"
_UPTIME = r"(?:\[(\d+[.,]\d{3})s\]|(?<![\d.:,])(\d+[.,]\d{3}): ?\[)"
_UNIX_DATE = r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (?:([A-Z][A-Za-z+\d-]{1,5}) )?(\d{4})"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PID = r"\b(?:jmap|jcmd)\b(?:(?!\b(?:jmap|jcmd)\b)[^\n|;])*?\s(\d+)\b|^(\d+):\s*$"


@dataclass(frozen=True)
class Stamp:
    """Each is None where nothing tells it. `time_s` is since the epoch (UTC where no zone is written)."""

    time_s: float | None = None
    uptime_s: float | None = None
    pid: int | None = None


def read_stamp(context: str) -> Stamp:
    """The last time, uptime and pid in a few lines of text."""
    pid = _last(_PID, context)
    uptime = _last(_UPTIME, context)
    return Stamp(
        time_s=_time(context),
        uptime_s=decimal(uptime[1] or uptime[2]) if uptime else None,
        pid=integer(pid[1] or pid[2]) if pid else None,
    )


def _last(pattern: str, text: str) -> re.Match[str] | None:
    return max(re.finditer(pattern, text, re.ASCII | re.MULTILINE), key=re.Match.start, default=None)


def _time(text: str) -> float | None:
    iso, unix = _last(_DATE, text), _last(_UNIX_DATE, text)
    try:
        if iso and not (unix and unix.start() > iso.start()):
            year, month, day, hour, minute, second = integers(iso.groups()[:6]) or [0] * 6
            fraction = decimal(f"0.{iso[7] or 0}") or 0.0
            moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc).timestamp()
            return moment + fraction - _offset_s(iso[8])
        if unix and unix[1] in _MONTHS:
            year, day, hour, minute, second = integers((unix[7], *unix.groups()[1:5])) or [0] * 5
            month = _MONTHS.index(unix[1]) + 1
            return datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc).timestamp()
    except ValueError:  # the 31st of February: digits that were no date
        pass
    return None


def _offset_s(zone: str | None) -> int:
    if not zone or zone in ("Z", "UTC"):
        return 0
    digits = zone[1:].replace(":", "")
    offset = (integer(digits[:2]) or 0) * 3600 + (integer(digits[2:]) or 0) * 60
    return -offset if zone[0] == "-" else offset
