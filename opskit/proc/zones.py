"""Time zones of processes as their C library finds them: TZ, else /etc/localtime; the offset from UTC at a moment.

TZ=Europe/Berlin            the file /usr/share/zoneinfo/Europe/Berlin (TZDIR may name another directory)
TZ=:/etc/localtime          that file
TZ=CET-1CEST,M3.5.0,M10.5.0/3   a rule (tzset(3))
TZ=                         UTC; so is a name without a file
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.files.tzif import parse_zone_file
from opskit.proc.fs import optional
from opskit.proc.zone_rule import offset_by_rule
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from opskit.proc.fs import ProcFS

LOCALTIME = "/etc/localtime"
DIRECTORY = "/usr/share/zoneinfo"
_LARGEST_BYTES = 1 << 16
_MOST_NAME = 200


class Zone(NamedTuple):
    """A zone. `source`: `TZ` or /etc/localtime; `name`: what it is called, None: not known; `utc_offset_s`: None where unknown.

    `is_missing`: TZ names a file that is not there, so the C library uses UTC.
    """

    source: str
    name: str | None
    utc_offset_s: float | None
    is_missing: bool = False


def zone_of(fs: ProcFS, pid: int, given: str | None, now: datetime, directory: str | None = None) -> Zone:
    """The zone of a process with this TZ (None: it has none) and TZDIR, in its own root directory."""
    if given is None:
        return zone_of_file(fs, pid, LOCALTIME, LOCALTIME, now)
    word = given[:_MOST_NAME].removeprefix(":")
    if not word:
        return Zone("TZ", "UTC", 0.0)
    path = word if word.startswith("/") else posixpath.join(directory or DIRECTORY, word)
    found = zone_of_file(fs, pid, path, "TZ", now)._replace(name=word)
    offset_s = offset_by_rule(word, now.timestamp()) if found.is_missing else None
    return found if offset_s is None else Zone("TZ", word, offset_s)


def zone_of_file(fs: ProcFS, pid: int, path: str, source: str, now: datetime) -> Zone:
    """The zone in a file of a process's root directory."""
    try:
        real = fs.inside(pid, path)
        data = fs.read_inside(pid, path, _LARGEST_BYTES)
    except FileNotFoundError:
        return Zone(source, None, 0.0, is_missing=True)
    except OSError:
        return Zone(source, None, None)
    return Zone(source, _name_in(real), _offset_s(data, now))


def _offset_s(data: bytes, now: datetime) -> float | None:
    """The offset in a zone file; None for what is no such file."""
    time_s = now.timestamp()
    try:
        found = parse_zone_file(data)
    except BadInput:
        return None
    offset_s = found.offset_at(time_s)
    return offset_by_rule(found.rule, time_s) if offset_s is None else offset_s


def machine_zone(fs: ProcFS, now: datetime) -> Zone:
    """That of the machine: /etc/localtime below the tree's root."""
    data = optional(fs.read_path, f"{fs.root}{LOCALTIME}", _LARGEST_BYTES)
    if data is None:
        return Zone(LOCALTIME, None, None if fs.root_exists("etc", "localtime") else 0.0, is_missing=True)
    link = optional(fs.root_links, "etc", default={}).get("localtime", "")
    return Zone(LOCALTIME, _name_in(link), _offset_s(data, now))


def _name_in(path: str) -> str | None:
    """`Europe/Berlin` of a path in a directory of zones."""
    return path.partition("/zoneinfo/")[2].removeprefix("posix/")[:_MOST_NAME] or None
