"""Numbers as people read them. None is "unknown", never 0."""

from __future__ import annotations


def size(count: float | None) -> str:
    """Bytes in binary units: 512 B, 8.0 KiB, 11.8 GiB."""
    if count is None:
        return "unknown"
    if abs(count) < 1024:
        return f"{count:.0f} B"
    amount = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        amount /= 1024
        if abs(amount) < 1024:
            break
    return f"{amount:.1f} {unit}" if abs(amount) < 100 else f"{amount:.0f} {unit}"


def whole(count: float | None) -> str:
    """A count with thousands separators."""
    return "unknown" if count is None else f"{count:,.0f}"


def plain(value: object) -> str:
    """A value for awk: no separators; "-" where it is not known."""
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)
