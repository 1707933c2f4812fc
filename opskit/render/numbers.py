"""Numbers as people read them. None is "unknown", never 0."""

from __future__ import annotations

from typing import Any


def size(count: float | None) -> str:
    """Bytes in binary units: 512 B, 8.0 KiB, 11.8 GiB."""
    if count is None:
        return "unknown"
    amount, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(amount) < 1024:
            break
        amount, unit = amount / 1024, larger
    digits = 0 if unit == "B" or abs(amount) >= 100 else 1
    return f"{amount:.{digits}f} {unit}"


def whole(count: float | None) -> str:
    """A count with thousands separators."""
    return "unknown" if count is None else f"{count:,.0f}"


def plain(value: object) -> str:
    """A value for awk: no separators; "-" where it is not known."""
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)


def percent(share: float | None) -> str:
    """A share as people read it: `49 %`, `0.3 %`, `under 0.1 %`, `99.9 %`: not all is not 100 %; "unknown" for None."""
    if share is None:
        return "unknown"
    number = share * 100
    if 0 < number < 0.05:
        return "under 0.1 %"
    if 99.5 <= number < 100:
        return f"{int(number * 10) / 10} %"
    return f"{number:.0f} %" if number >= 9.95 or number == 0 else f"{number:.1f} %"


def twelve_digits(value: Any) -> Any:
    """A JSON value whose floats have the digits that mean something: 0.0025662980000000016 is 0.002566298.

    What is left of a sum's rounding also differs between Pythons: from 3.12 on, they sum more exactly.
    """
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: twelve_digits(item) for key, item in value.items()}
    return [twelve_digits(item) for item in value] if isinstance(value, list) else value
