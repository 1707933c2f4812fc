"""/etc/adjtime (adjtime_config(5)): whether the hardware clock (RTC) keeps UTC or local time, in the third line.

0.0 0 0.0
0
UTC
"""

from __future__ import annotations


def parse_rtc_zone(text: str) -> str | None:
    """`UTC` or `LOCAL`; None where the file does not tell, which means UTC."""
    lines = text[:1000].splitlines()
    word = lines[2].strip() if len(lines) > 2 else ""
    return word if word in ("UTC", "LOCAL") else None
