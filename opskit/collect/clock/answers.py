"""What time daemons' own clients say: chronyc, ntpq, timedatectl. Pure.

The offset is what has to be added to the clock: positive where it is behind.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from opskit.quantities import decimal, hexadecimal, integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_TEXT = 16 << 10
_PAIR = re.compile(r"([A-Za-z_]{1,30})=(\"[^\"]{0,200}\"|[^,\s]{0,200})")
_LEAPS = ("Normal", "Insert second", "Delete second", "Not synchronised")
_DATE = re.compile(r"[A-Za-z]{3} ([A-Za-z]{3}) +([0-9]{1,2}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) ([0-9]{4})")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ERA_S, _MOST_EXPONENT = 1 << 32, 17
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


class Answer(NamedTuple):
    """What a daemon's client printed. `tool`: its command line; `problem`: why there is no answer.

    `reference`: the server that it follows, or its own clock (`local`); `error_s`: half of the round trip to the reference clock, and its
    dispersion; `age_s`: since it used a time of a server, `interval_s`: how often it does.
    """

    daemon: str
    tool: tuple[str, ...]
    is_synchronised: bool | None = None
    reference: str | None = None
    is_local: bool = False
    stratum: int | None = None
    offset_s: float | None = None
    error_s: float | None = None
    problem: str | None = None
    pid: int | None = None
    age_s: float | None = None
    interval_s: float | None = None


def parse_tracking(text: str, now_s: float | None = None) -> Answer | None:
    """`chronyc -n tracking`: lines of `Leap status     : Normal`. `now_s`: since 1970; without it the age is unknown."""
    pairs = (line.partition(":") for line in text[:_MOST_TEXT].splitlines())
    found = {name.strip(): value.strip() for name, _, value in pairs}
    leap, reference = found.get("Leap status"), found.get("Reference ID", "")
    if leap not in _LEAPS:
        return None
    words = found.get("System time", "").split()
    amount = decimal(words[0]) if len(words) > 2 else None
    offset_s = None if amount is None else amount if words[2] == "slow" else -amount
    number, _, name = reference.partition(" ")
    is_local = number == "7F7F0101"  # 127.127.1.1: the directive `local`
    is_synchronised = leap != "Not synchronised" and not is_local
    updated_s = _date_s(found.get("Ref time (UTC)", ""))
    return Answer(
        "chronyd", (), is_synchronised, "its own clock" if is_local else name.strip("() ") or None, is_local,
        integer(found.get("Stratum", "")), offset_s if is_synchronised else None,
        _distance(_first(found.get("Root delay")), _first(found.get("Root dispersion"))) if is_synchronised else None,
        age_s=None if now_s is None or updated_s is None else max(now_s - updated_s, 0.0),
        interval_s=_first(found.get("Update interval")),
    )  # fmt: skip


def parse_rv(text: str, _: float | None = None) -> Answer | None:
    """`ntpq -n -c rv`: `associd=0 status=0615 leap_none, sync_ntp, …, leap=00, stratum=3, refid=10.0.0.1, offset=0.123`, in ms."""
    found = {name: value.strip('"') for name, value in _PAIR.findall(text[:_MOST_TEXT])}
    if "leap" not in found or "stratum" not in found:
        return None
    reference, stratum = found.get("refid") or None, integer(found["stratum"])
    is_local = reference in ("LOCL", ".LOCL.", "127.127.1.0", "127.127.1.1")
    is_synchronised = found["leap"] not in ("11", "3") and stratum is not None and 0 < stratum < 16 and not is_local
    offset_ms, delay_ms, dispersion_ms = (_signed(found.get(name)) for name in ("offset", "rootdelay", "rootdisp"))
    distance_ms = _distance(delay_ms, dispersion_ms)
    whom = "its own clock" if is_local else reference if is_synchronised else None  # INIT, STEP, RATE: no server
    now, updated = (hexadecimal(found.get(name, "").partition(".")[0]) for name in ("clock", "reftime"))
    exponent = integer(found.get("tc", ""))
    return Answer(
        "ntpd", (), is_synchronised, whom, is_local, stratum,
        offset_ms / 1e3 if is_synchronised and offset_ms is not None else None,
        distance_ms / 1e3 if is_synchronised and distance_ms is not None else None,
        age_s=None if now is None or not updated else max(float((now - updated + _ERA_S // 2) % _ERA_S - _ERA_S // 2), 0.0),
        interval_s=None if exponent is None or exponent > _MOST_EXPONENT else float(1 << exponent),
    )  # fmt: skip


def parse_timesync(text: str, _: float | None = None) -> Answer | None:
    """`timedatectl show-timesync`: ServerName=, ServerAddress=, NTPMessage={ Leap=0, …, Stratum=2, RootDelay=8.5ms, … }."""
    lines = (line.partition("=") for line in text[:_MOST_TEXT].splitlines())
    found = {name: value for name, _, value in lines}
    if not any(name in found for name in ("ServerName", "PollIntervalMaxUSec", "FallbackNTPServers", "Frequency")):
        return None
    message = dict(_PAIR.findall(found.get("NTPMessage", "")))
    taken = message.get("Ignored") == "no" and message.get("Leap") != "3"
    address = found.get("ServerAddress") or found.get("ServerName") or None
    distance_s = _distance(_span_s(message.get("RootDelay")), _span_s(message.get("RootDispersion")))
    return Answer(
        "systemd-timesyncd", (), taken, address, is_local=False,
        stratum=integer(message.get("Stratum", "")) if taken else None, error_s=distance_s if taken else None,
    )  # fmt: skip


PARSERS: dict[str, Callable[[str, float | None], Answer | None]] = {
    "chronyc": parse_tracking,
    "ntpq": parse_rv,
    "timedatectl": parse_timesync,
}


def _date_s(text: str) -> float | None:
    """Seconds since 1970 of `Mon Nov 23 09:51:11 2026`; None for 1970 itself, which means never."""
    found = _DATE.fullmatch(text)
    if found is None or found[1] not in _MONTHS:
        return None
    day, hour, minute, second, year = (integer(part) or 0 for part in found.group(2, 3, 4, 5, 6))
    try:
        date = datetime(year, _MONTHS.index(found[1]) + 1, day, hour, minute, min(second, 59), tzinfo=timezone.utc)
    except ValueError:
        return None
    return date.timestamp() or None


def _first(value: str | None) -> float | None:
    words = (value or "").split()
    return decimal(words[0]) if words else None


def _signed(text: str | None) -> float | None:
    number = decimal((text or "").lstrip("+-"))
    return None if number is None else -number if (text or "").startswith("-") else number


def _span_s(text: str | None) -> float | None:
    """`274us`, `8.5ms`, `1.2s`, or 0."""
    found = re.fullmatch(r"([0-9.]{1,20})([a-z]{0,3})", text or "")
    number = decimal(found[1]) if found else None
    return None if found is None or number is None else number * _UNITS.get(found[2] or "s", 1.0)


def _distance(delay: float | None, dispersion: float | None) -> float | None:
    return None if delay is None or dispersion is None else delay / 2 + dispersion
