"""Pressure stall information: /proc/pressure/cpu and a cgroup's cpu.pressure (Documentation/accounting/psi.rst).

some avg10=0.00 avg60=0.12 avg300=0.09 total=72873122
full avg10=0.00 avg60=0.00 avg300=0.00 total=0

`some`: at least one task was delayed; `full`: all were (since Linux 5.13 for the cpu too).
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import decimal, integer
from opskit.records import NamedTuple

_AVERAGES = ("avg10", "avg60", "avg300")


class Averages(NamedTuple):
    """Shares of the time, 0 to 1, over the last 10, 60 and 300 seconds."""

    s10: float
    s60: float
    s300: float


def parse_pressure(text: str) -> int | None:
    """The total of `some` since boot, or since the cgroup was made, in us; None: no such line. Raises BadInput."""
    return parse_pressures(text).get("some")


def parse_pressures(text: str) -> dict[str, int]:
    """The totals of `some` and `full`, likewise. Raises BadInput."""
    totals: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, *words = line.split() or [""]
        total_us = integer(next((word[6:] for word in words if word.startswith("total=")), ""))
        if total_us is None:
            raise BadInput("pressure", "not `some avg10=… total=N`", number, line)
        totals[name] = total_us
    return totals


def parse_averages(text: str) -> Averages | None:
    """The averages of `some`; None: no such line, or one without them."""
    for line in text.splitlines():
        name, *words = line.split(None, 8) or [""]
        pairs = dict(word.partition("=")[::2] for word in words)
        known = [value / 100 for key in _AVERAGES if (value := decimal(pairs.get(key, ""))) is not None]
        if name == "some" and len(known) == len(_AVERAGES):
            return Averages(*known)
    return None
