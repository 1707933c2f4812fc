"""Libraries that replace a process's clock functions (LD_PRELOAD): libfaketime, datefudge.

FAKETIME=-7h                 the clock is 7 hours behind
FAKETIME=+3600               an hour ahead
FAKETIME=@2020-12-24 20:30   it began there
"""

from __future__ import annotations

import re

from opskit.proc.files.maps import find_mapping
from opskit.quantities import decimal

VARIABLES = ("FAKETIME", "DATEFUDGE")
_LIBRARY = re.compile(r"(?:libfaketime[^/]*|datefudge[^/]*)\.so[^/]*")
_PARTS = ("/libfaketime", "/datefudge")
_SHIFT = re.compile(r"([+-])([0-9.]{1,20})([smhdy]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "y": 31_536_000}


def library_in(maps: str) -> str | None:
    """The path of such a library in /proc/PID/maps; None: none is mapped."""
    for part in _PARTS:
        found = find_mapping(maps, part, lambda rights: "x" in rights)
        if found is not None and _LIBRARY.fullmatch(found.path.rpartition("/")[2]):
            return found.path
    return None


def shift_s(value: str) -> float | None:
    """By how much FAKETIME sets the clock ahead; None for a date, or what is no shift."""
    found = _SHIFT.match(value)
    amount = decimal(found[2]) if found else None
    return None if found is None or amount is None else (-1 if found[1] == "-" else 1) * amount * _UNITS[found[3]]
