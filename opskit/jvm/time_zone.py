"""The default time zone of a JVM: -Duser.timezone, else TZ, else /etc/localtime (java.util.TimeZone, TimeZone_md.c).

-Duser.timezone=Europe/Berlin   a zone of its own database, which images without zone files have too
-Duser.timezone=GMT+8           eight hours east of UTC; TZ=GMT+8 is west for the C library, and east for Java
TZ=CET-1CEST                    no name of Java's: the offset that the C library has
TZ=                             as if it were not set; the C library takes UTC
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.proc.fs import optional
from opskit.proc.zones import DIRECTORY, Zone, zone_of, zone_of_file
from opskit.quantities import integer

if TYPE_CHECKING:
    from datetime import datetime

    from opskit.proc.fs import ProcFS

_OPTION = "-Duser.timezone"
_CUSTOM = re.compile(r"GMT([+-])([0-9]{1,2}?):?([0-5][0-9])?")
_MOST_HOURS, _MOST_NAME = 23, 200


def java_zone_of(
    fs: ProcFS, pid: int, options: list[str], given: str | None, now: datetime, directory: str | None = None
) -> Zone:
    """The zone that a JVM with these options, this TZ (None: it has none) and TZDIR starts with.

    Its offset is unknown where neither the JVM's root directory nor opskit's has such a zone: Java knows more names, `PST`.
    """
    asked = [word.partition("=")[2] for word in options if word.startswith(f"{_OPTION}=")]
    if asked and asked[-1]:
        return _named(fs, pid, asked[-1], now)._replace(source=_OPTION)
    if not given:
        return zone_of(fs, pid, None, now)
    found = _named(fs, pid, given.removeprefix(":").removeprefix("posix/"), now)
    by_rule = zone_of(fs, pid, given, now, directory)
    return by_rule if found.is_missing and not by_rule.is_missing else found


def _named(fs: ProcFS, pid: int, name: str, now: datetime) -> Zone:
    name = name[:_MOST_NAME]
    custom = _CUSTOM.fullmatch(name)
    hours = integer(custom[2]) if custom else None
    if custom and hours is not None and hours <= _MOST_HOURS:
        seconds = hours * 3600 + (integer(custom[3] or "0") or 0) * 60
        return Zone("TZ", name, -seconds if custom[1] == "-" else seconds)
    path = f"{DIRECTORY}/{name}"
    found = zone_of_file(fs, pid, path, "TZ", now)
    own = integer(optional(fs.link, "self", default=b""))
    if found.is_missing and own is not None:
        found = zone_of_file(fs, own, path, "TZ", now)  # Java's own database has it, too
    return found._replace(name=name, utc_offset_s=None if found.is_missing else found.utc_offset_s)
