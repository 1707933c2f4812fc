"""When an update of a JDK was released: since 2018 one each January, April, July and October."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.quantities import integer

if TYPE_CHECKING:
    from opskit.jvm.logs.crashes.record import CrashReport

_FIRST = {11: 2018, 17: 2021, 21: 2023, 25: 2025}  # in October of this year came M.0.1
_UPDATE = re.compile(r"\b(\d{2})\.0\.(\d{1,2})(?![\d])")
_UPDATE_8 = re.compile(r"\b1\.8\.0_(\d{2,3})|\b8u(\d{2,3})\b")
_YEAR = re.compile(r"\b(20\d\d)\b")
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_OLD_MONTHS = 12
_LONG_TERM = (8, *_FIRST)
_TEN = 2018 * 12 + 2  # JDK 10 came in March 2018, and then one each half year
_SEVEN_ENDED = 2022 * 12 + 6
_8_FROM, _8_YEAR, _8_MONTH = 252, 2020, 4  # 8u252; then ten more each quarter


def old_release(report: CrashReport) -> str | None:
    """A sentence where the update was a year old or more at the crash, or its release got no updates any more; None otherwise."""
    crashed, major = _moment(report.at or ""), report.java_major
    if crashed is None:
        return None
    found = _released(f"{report.runtime or ''} {report.vm or ''}")
    if found is not None and crashed - found[2] >= _OLD_MONTHS:
        name, of, month = found
        return f"JDK {name} was released in {_date(month)}, {crashed - month} months before: later updates of {of} fix crashes"
    if major is None or major in _LONG_TERM:
        return None
    ended = _TEN + 6 * (major + 1 - 10) if major >= 9 else _SEVEN_ENDED
    if crashed < ended:
        return None
    return f"JDK {major} gets no updates since {_date(ended)}: {min((each for each in _LONG_TERM if each > major), default='the next one')} does"


def _date(month: int) -> str:
    return f"{_MONTHS[month % 12]} {month // 12}"


def _released(text: str) -> tuple[str, int, int] | None:
    """(name, major, month since year 0) of an update."""
    if found := _UPDATE.search(text):
        major, update = integer(found[1]) or 0, integer(found[2]) or 0
        if major in _FIRST and update:
            return found[0], major, _FIRST[major] * 12 + 9 + 3 * (update - 1)
        return None
    if found := _UPDATE_8.search(text):
        update = integer(found[1] or found[2]) or 0
        # 8u2x1 and 8u2x2 are of one quarter.
        if update >= _8_FROM - 1:
            return f"8u{update}", 8, _8_YEAR * 12 + _8_MONTH - 1 + 3 * round((update - _8_FROM) / 10)
    return None


def _moment(at: str) -> int | None:
    """The month of `Mon Nov 23 15:18:57 2026 UTC`, since year 0."""
    year = _YEAR.search(at)
    month = next((place for place, name in enumerate(_MONTHS) if name in at), None)
    return None if year is None or month is None else (integer(year[1]) or 0) * 12 + month
