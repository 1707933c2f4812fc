"""The boot time: `btime` of /proc/stat, and /proc/uptime (proc(5)); dates and ages of processes by them.

btime 1795242000
350735.47 234388.90
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import decimal, integer


def parse_boot_time(text: str) -> int:
    """Boot in seconds since the epoch, of /proc/stat. It moves with the wall clock. Raises BadInput."""
    words = text.partition("\nbtime ")[2][:33].split(None, 1)
    seconds = integer(words[0]) if words else None
    if seconds is None:
        raise BadInput("stat", "no `btime` line")
    return seconds


def parse_uptime(text: str) -> float:
    """Seconds since boot, of /proc/uptime. Raises BadInput."""
    words = text[:80].split(None, 1)
    seconds = decimal(words[0]) if words else None
    if seconds is None:
        raise BadInput("uptime", "not `seconds seconds`", found=text)
    return seconds


def started_s(boot_s: int | None, start_ticks: int, clock_ticks: int) -> float | None:
    """The start of a process in seconds since the epoch, exact to a second; None without the boot time."""
    return None if boot_s is None else boot_s + start_ticks / clock_ticks


def age_s(uptime_s: float | None, start_ticks: int, clock_ticks: int) -> float | None:
    """Seconds since the start of a process; None without the uptime."""
    return None if uptime_s is None else uptime_s - start_ticks / clock_ticks
