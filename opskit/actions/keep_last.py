"""Remove all but the last files of a series: NAME-20261124T010203Z.tar.gz. No other file is touched."""

from __future__ import annotations

import os
import re
import stat
import zlib
from typing import TYPE_CHECKING

from opskit.errors import CannotWrite

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDINGS = (".tar.gz", ".tgz")
_GZIP, _FIRST_BYTES, _FIRST_NAME = 31, 4096, b"manifest.json\0"  # 31: zlib's number for its format
_TIME = r"-[0-9]{8}T[0-9]{6}Z(?:-[0-9]+)?"


def with_time(path: str, stamp: str) -> str:
    """The path with a time before its ending; with a number where that exists."""
    begin, ending = _split(path)
    place, number = f"{begin}-{stamp}{ending}", 1
    while os.path.lexists(place):
        number += 1
        place = f"{begin}-{stamp}-{number}{ending}"
    return place


def keep_last(path: str, most: int) -> list[str]:
    """Remove the oldest files of the series but the last `most`, ours alone; gives what was removed. Raises CannotWrite."""
    removed = []
    for old in list(_series(path))[:-most]:
        try:
            os.unlink(old)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise CannotWrite(f"cannot remove {old}, which --keep {most} no longer keeps: {error.strerror}") from None
        removed.append(old)
    return removed


def _series(path: str) -> Iterator[str]:
    """Our captures of this name with a time, the oldest first."""
    begin, ending = _split(path)
    directory, _, stem = begin.rpartition("/")
    one = re.compile(re.escape(stem) + _TIME + re.escape(ending))
    where = f"{directory}/" if directory or path.startswith("/") else ""
    try:
        names = [name for name in os.listdir(where or ".") if one.fullmatch(name)]
    except OSError:
        return
    for name in sorted(names, key=_order):
        try:
            found = os.lstat(f"{where}{name}")
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and _is_capture(f"{where}{name}"):
            yield f"{where}{name}"


def _is_capture(path: str) -> bool:
    """Whether its first file is that of a capture: somebody may have given another archive such a name."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return zlib.decompressobj(_GZIP).decompress(file.read(_FIRST_BYTES), _FIRST_BYTES).startswith(_FIRST_NAME)
    except (OSError, zlib.error):
        return False


def _order(name: str) -> tuple[str, int]:
    found = re.search(r"([0-9]{8}T[0-9]{6}Z)(?:-([0-9]+))?\.[a-z.]+\Z", name)
    return (found[1], int(found[2] or 1)) if found else ("", 0)  # a number


def _split(path: str) -> tuple[str, str]:
    ending = next((each for each in ENDINGS if path.endswith(each)), "")
    return path[: len(path) - len(ending)], ending
