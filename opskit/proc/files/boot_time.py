"""When the machine was booted: `btime` of /proc/stat, and /proc/uptime (proc(5)).

btime 1795242000
350735.47 234388.90
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import decimal, integer


def parse_boot_time(text: str) -> int:
    """Seconds from the epoch to the boot, of /proc/stat. It moves with the wall clock. Raises BadInput."""
    at = text.find("\nbtime ")
    words = text[at + 7 : at + 40].split(None, 1) if at >= 0 else []
    seconds = integer(words[0]) if words else None
    if seconds is None:
        raise BadInput("stat", "no `btime` line")
    return seconds


def parse_uptime(text: str) -> float:
    """Seconds since the boot, of /proc/uptime. Raises BadInput."""
    words = text[:80].split(None, 1)
    seconds = decimal(words[0]) if words else None
    if seconds is None:
        raise BadInput("uptime", "not `seconds seconds`", found=text)
    return seconds
