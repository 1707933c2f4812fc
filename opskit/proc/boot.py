"""When the machine was booted: `btime` of /proc/stat, and /proc/uptime (proc(5)).

btime 1795242000
350735.47 234388.90
"""

from __future__ import annotations

from opskit.errors import BadInput


def parse_boot_time(text: str) -> int:
    """Seconds from the epoch to the boot, of /proc/stat. It moves with the wall clock. Raises BadInput."""
    at = text.find("\nbtime ")
    words = text[at + 7 : at + 40].split(None, 1) if at >= 0 else []
    if not words or not words[0].isdigit():
        raise BadInput("stat", "no `btime` line")
    return int(words[0])


def parse_uptime(text: str) -> float:
    """Seconds since the boot, of /proc/uptime. Raises BadInput."""
    try:
        return float(text.split()[0])
    except (ValueError, IndexError):
        raise BadInput("uptime", "not `seconds seconds`", found=text) from None
