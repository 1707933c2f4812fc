"""A value of JMX as text: as Java names it (-f text, csv), or with its unit (-f table, markdown)."""

from __future__ import annotations

from math import isfinite, isnan
from typing import TYPE_CHECKING

from opskit.escape import printable
from opskit.quantities import duration, percent, signed_size, size, whole
from opskit.render.views.jmx.known import BYTES, DATE, ID, MILLISECONDS, NANOSECONDS, PLAIN, RATIO

if TYPE_CHECKING:
    from opskit.analysis.jmx.result import Line
    from opskit.collect.jmx.facts import Value
    from opskit.render.views.jmx.known import Known

PER_S = {MILLISECONDS: 1e3, NANOSECONDS: 1e9}
_TOO_LARGE = 1e300  # a BigInteger may have any length
_UNDEFINED = -1  # of a maximum, a threshold
_LAST_YEAR_S = 253_402_300_799  # of the calendar: 9999


def line_text(line: Line, *, rate: bool) -> str:
    """`java.lang:type=Memory HeapMemoryUsage.used 357826560`; `rate`: the change a second as the last word."""
    words = [printable(line.bean), path_text(line.path), "-" if line.error is not None else raw(line.value)]
    if rate:
        words.append("-" if line.change_per_s is None else f"{line.change_per_s:+.12g}")
    return " ".join(words)


def path_text(path: str) -> str:
    r"""One word: a blank in a key is `\x20`."""
    return printable(path).replace(" ", "\\x20")


def raw(value: Value) -> str:
    """The value on one line: `true`, `null`, all digits; text as it is, an array as JSON."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, str):
        return printable(value) or '""'
    import json

    return printable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def number_text(value: float) -> str:
    """A double, all digits; Java's names for what is no number."""
    return repr(value) if isfinite(value) else "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


def human(value: Value, known: Known) -> str:
    """The value with its unit: `341 MiB`, `3.2 s`, `12 %`."""
    if isinstance(value, (list, tuple)):
        return ", ".join(human(each, known) for each in value) or "none"
    if value is None or isinstance(value, (bool, str)) or not isinstance(value, (int, float)):
        return raw(value)
    if isinstance(value, float) and not isfinite(value):
        return number_text(value)
    return _number(value, known.unit)


def _number(value: float, unit: str) -> str:
    if unit == PLAIN or abs(value) > _TOO_LARGE:
        return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
    if unit == ID:
        return str(value)
    if unit == BYTES:
        return "undefined" if value == _UNDEFINED else size(value)
    if unit in PER_S:
        return duration(value / PER_S[unit]) if value >= 0 else "unknown"
    if unit == RATIO:
        return percent(value) if value >= 0 else "unknown"
    if unit == DATE and 0 <= value / 1000 <= _LAST_YEAR_S:
        return date_text(value / 1000)
    return whole(value)


def date_text(seconds: float) -> str:
    """A moment in UTC."""
    from datetime import datetime, timezone

    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def change_text(line: Line, known: Known) -> str:
    """What a number changed by each second: `+1.2 MiB/s`; a time per second is a share; empty where nothing changed."""
    change = line.change_per_s
    if not change or known.unit in (DATE, ID, RATIO):
        return ""
    if known.unit == BYTES:
        return f"{signed_size(change)}/s"
    if known.unit in PER_S and known.rises:
        return f"{percent(change / PER_S[known.unit])} of the time"
    return "" if known.unit in PER_S else f"{change:+,.1f}/s" if abs(change) >= 0.05 else f"{change:+.2g}/s"
