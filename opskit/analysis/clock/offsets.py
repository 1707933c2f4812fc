"""Offsets of clocks in words, and those that look like a time zone's. Pure."""

from __future__ import annotations

from opskit.analysis.finding import HOST, Finding
from opskit.quantities import duration, plural

_QUARTER_S, _HOUR_S = 900, 3600
_MOST_ZONE_S = 14 * _HOUR_S  # UTC+14 is the largest offset in use
_NEAR_HOUR_S, _NEAR_QUARTER_S = 60.0, 10.0  # what a clock may have drifted beside it; few zones are no whole hours off
_EXACT_S = 100.0
LARGE_S = 0.128  # ntpd steps the clock instead of slewing it from here on


def zone_in(offset_s: float) -> int | None:
    """The time zone's offset that an offset matches: a multiple of 15 minutes up to 14 hours; None: it matches none."""
    zone_s = round(offset_s / _QUARTER_S) * _QUARTER_S
    most_s = _NEAR_QUARTER_S if zone_s % _HOUR_S else _NEAR_HOUR_S
    return zone_s if zone_s and abs(zone_s) <= _MOST_ZONE_S and abs(offset_s - zone_s) <= most_s else None


def hours(seconds: float) -> str:
    """Whole minutes: `7 h`, `5 h 45 min`, `30 min`."""
    whole_h, minutes = divmod(round(abs(seconds) / 60), 60)
    return " ".join([*([f"{whole_h} h"] if whole_h else ()), *([f"{minutes} min"] if minutes or not whole_h else ())])


def amount(seconds: float) -> str:
    """A distance between two clocks: `12 us`, `3.2 s`, `25,200.1 s`, `7 h`, `12 days`."""
    size = abs(seconds)
    if size < _EXACT_S:
        return duration(size)
    if size >= 3 * 86400:
        return plural(round(size / 86400), "day")
    is_whole = abs(size - round(size / 60) * 60) < 0.5
    return hours(size) if is_whole or zone_in(size) else duration(size)


def side(offset_s: float) -> str:
    """Where the clock is: `behind` for a positive offset, else `ahead of`."""
    return "behind" if offset_s > 0 else "ahead of"


def precise(seconds: float) -> str:
    """A signed number of seconds to the microsecond: `+25200.123001 s`."""
    return f"{seconds:+.6f} s"


def utc(offset_s: float | None) -> str:
    """`UTC`, `UTC-7`, `UTC+5:45`; unknown."""
    if offset_s is None:
        return "unknown"
    whole_h, minutes = divmod(round(abs(offset_s) / 60), 60)
    if not whole_h and not minutes:
        return "UTC"
    return f"UTC{'-' if offset_s < 0 else '+'}{whole_h}{f':{minutes:02}' if minutes else ''}"


def offset_finding(offset_s: float, error_s: float, whom: str, evidence: str, more: str, next_: str) -> Finding | None:
    """A clock that is off by more than daemons slew; None: it is not, or nobody can tell. `more`: a clause about it."""
    zone_s = zone_in(offset_s)
    if zone_s is not None:
        summary = (
            f"the clock is {hours(zone_s)} {side(offset_s)} {whom}: matches a timezone offset, as if set to local time"
        )
        return Finding("clock-timezone-offset", "warning", HOST, summary + more, evidence, next=next_)
    if abs(offset_s) <= LARGE_S + error_s:
        return None
    summary = f"the clock is {amount(offset_s)} {side(offset_s)} {whom}"
    return Finding("clock-offset", "warning", HOST, summary + more, evidence, next=next_)
