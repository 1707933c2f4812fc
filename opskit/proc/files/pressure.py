"""Pressure stall information: /proc/pressure/cpu and a cgroup's cpu.pressure (Documentation/accounting/psi.rst).

some avg10=0.00 avg60=0.12 avg300=0.09 total=72873122
full avg10=0.00 avg60=0.00 avg300=0.00 total=0

`some`: at least one task was delayed; `full`: all were (since Linux 5.13 for the cpu too).
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import decimal, integer
from opskit.records import NamedTuple

NONE_HERE = "this kernel has no PSI: it needs Linux 4.20 and psi=1"


class Averages(NamedTuple):
    """The shares of the last 10, 60 and 300 s, from 0 to 1."""

    of_10_s: float
    of_60_s: float
    of_300_s: float


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


def waiting_share(before_us: int | None, after_us: int | None, elapsed_s: float) -> float | None:
    """The share of the time between two readings of a total in which tasks waited; None: unknown, or one reading."""
    if before_us is None or after_us is None or elapsed_s <= 0:
        return None
    return min(1.0, max(0, after_us - before_us) / 1e6 / elapsed_s)


def parse_averages(text: str) -> dict[str, Averages]:
    """The averages of `some` and `full`; a line without them is left out."""
    found = {}
    for line in text.splitlines():
        name, *words = line.split(None, 5) or [""]
        values = {key: decimal(value) for key, _, value in (word.partition("=") for word in words)}
        shares = [value / 100 for key in ("avg10", "avg60", "avg300") if (value := values.get(key)) is not None]
        if len(shares) == 3:
            found[name] = Averages(*shares)
    return found
