"""When a JVM crashed, as seconds since the epoch: from ctime()'s form and the zone's abbreviation, or from OpenJ9's date in UTC.

Wed Nov 19 10:58:56 2025 UTC     Tue Oct 17 20:25:14 2023 +08     2026/03/25 at 09:52:22:443
"""

from __future__ import annotations

import re
from datetime import datetime, timezone

from opskit.quantities import integer

_CTIME = re.compile(
    r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}([0-9]{1,2}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) ([0-9]{4}) (\S{1,9})"
)
_OPENJ9 = re.compile(r"([0-9]{4})/([0-9]{2})/([0-9]{2}) at ([0-9]{2}):([0-9]{2}):([0-9]{2})")
_OFFSET = re.compile(r"([+-])([0-9]{2}):?([0-9]{2})?")
_MONTHS = {
    "Jan": 1, "Feb": 2, "Mar": 3, "Apr": 4, "May": 5, "Jun": 6, "Jul": 7, "Aug": 8, "Sep": 9, "Oct": 10, "Nov": 11, "Dec": 12,
}  # fmt: skip
# Hours east of UTC. CST, IST and BST have several meanings.
_ZONES = {
    "UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "JST": 9, "KST": 9,
    "EST": -5, "EDT": -4, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
}  # fmt: skip


def epoch_of(at: str | None) -> float | None:
    """The moment of hs_err's `Time:`; None where its zone is missing, ambiguous or unknown."""
    found = _CTIME.fullmatch(at or "")
    if found is None or found[1] not in _MONTHS:
        return None
    east_s = _east_s(found[7])
    moment = _moment(found[6], str(_MONTHS[found[1]]), *found.group(2, 3, 4, 5))
    return None if east_s is None or moment is None else moment - east_s


def epoch_of_utc(at: str | None) -> float | None:
    """The moment of a javacore's 1TIDATETIMEUTC."""
    found = _OPENJ9.match(at or "")
    return _moment(*found.groups()) if found else None


def _east_s(zone: str) -> int | None:
    if zone in _ZONES:
        return _ZONES[zone] * 3600
    found = _OFFSET.fullmatch(zone)
    if found is None:
        return None
    east_s = (integer(found[2]) or 0) * 3600 + (integer(found[3] or "0") or 0) * 60
    return -east_s if found[1] == "-" else east_s


def _moment(*parts: str) -> float | None:
    year, month, day, hour, minute, second = (integer(part) or 0 for part in parts)
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None
