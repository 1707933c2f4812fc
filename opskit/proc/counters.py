"""Counters of the kernel that are 32 bits wide on every machine, such as those of interrupts and packets of a CPU: they wrap."""

from __future__ import annotations

_WRAPS_AT = 1 << 32


def added_32(now: int, before: int) -> int:
    """What has been added between two readings; 0 where the counter began anew, as that of an interrupt whose number is used again."""
    if now >= before:
        return now - before
    wrapped = (now - before) % _WRAPS_AT
    return wrapped if wrapped < _WRAPS_AT // 2 else 0
