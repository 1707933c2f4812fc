"""Rules of time zones as in TZ (tzset(3), POSIX): standard time, summer time, and when each begins.

CET-1CEST,M3.5.0,M10.5.0/3     an hour east of UTC; summer time from the last Sunday of March at 2 h to that of October at 3 h
JST-9                          no summer time
<+0545>-5:45                   a name of signs and digits
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone

from opskit.quantities import integer

_NAME = r"(?:[A-Za-z]{3,20}|<[A-Za-z0-9+-]{3,20}>)"
_TIME = r"[+-]?[0-9]{1,3}(?::[0-9]{1,2}){0,2}"
_DATE = r"(?:M[0-9]{1,2}\.[0-9]\.[0-9]|J?[0-9]{1,3})"
# Compiled where one is given.
_RULE = rf"{_NAME}({_TIME})(?:({_NAME})({_TIME})?(?:,({_DATE})(?:/({_TIME}))?,({_DATE})(?:/({_TIME}))?)?)?"
_USUAL = ("M3.2.0", "M11.1.0")  # of a rule without dates
_UTC = ("UTC0", "GMT0")
_TWO = "2"
_DAY_S, _HOUR_S = 86400, 3600
_LEAP_DAY = 60  # the number of February 29 in a leap year
_EPOCH = date(1970, 1, 1).toordinal()


def offset_by_rule(rule: str, time_s: float) -> int | None:
    """The offset from UTC in seconds at a moment; None for what is no rule."""
    if rule in _UTC:
        return 0
    found = re.fullmatch(_RULE, rule)
    if found is None:
        return None
    standard_s = -_seconds(found[1])
    if not found[2]:
        return standard_s
    summer_s = standard_s + _HOUR_S if found[3] is None else -_seconds(found[3])
    year = (datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=time_s + standard_s)).year
    begins = _day(found[4] or _USUAL[0], year)
    ends = _day(found[6] or _USUAL[1], year)
    if begins is None or ends is None:
        return None
    begins_s = begins * _DAY_S + _seconds(found[5] or _TWO) - standard_s
    ends_s = ends * _DAY_S + _seconds(found[7] or _TWO) - summer_s
    is_summer = begins_s <= time_s < ends_s if begins_s < ends_s else not ends_s <= time_s < begins_s
    return summer_s if is_summer else standard_s


def _seconds(text: str) -> int:
    """Seconds in `-5:45`."""
    parts = [integer(part) or 0 for part in text.lstrip("+-").split(":")]
    seconds = sum(part * unit for part, unit in zip(parts, (3600, 60, 1)))
    return -seconds if text.startswith("-") else seconds


def _day(text: str, year: int) -> int | None:
    """The day since 1970 of `M3.5.0` (month, week, weekday; week 5 is the last), `J60` (never February 29) or `59` (from 0)."""
    first = date(year, 1, 1).toordinal() - _EPOCH
    if not text.startswith("M"):
        number = integer(text.lstrip("J")) or 0
        if not text.startswith("J"):
            return first + number if number < 366 else None
        is_leap = date(year, 12, 31).timetuple().tm_yday == 366
        return first + number - 1 + (is_leap and number >= _LEAP_DAY) if 0 < number < 366 else None
    month, week, weekday = (integer(part) or 0 for part in text[1:].split("."))
    if not (0 < month < 13 and 0 < week < 6 and weekday < 7):
        return None
    begins = date(year, month, 1).toordinal()
    day = begins + (weekday - begins) % 7 + 7 * (week - 1)  # an ordinal that 7 divides is a Sunday
    while date.fromordinal(day).month != month:
        day -= 7
    return day - _EPOCH
