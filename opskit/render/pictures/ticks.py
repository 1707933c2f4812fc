"""Round numbers for an axis. Pure."""

from __future__ import annotations

import math

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def nice(step: float) -> float:
    """The next 1, 2 or 5 times a power of ten; 1 without a span."""
    if step <= 0:
        return 1
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= step * 0.999)


def byte_unit(highest: float) -> tuple[int, str]:
    """The binary unit for numbers up to that one: its bytes and its name."""
    power = min(len(_UNITS) - 1, int(math.log(max(highest, 1), 1024)))
    return 1024**power, _UNITS[power]


def elapsed_unit(span_s: float) -> tuple[int, str]:
    """The unit for times up to that one: its seconds and its name."""
    return (3600, "hours") if span_s >= 3 * 3600 else (60, "minutes") if span_s >= 180 else (1, "seconds")
