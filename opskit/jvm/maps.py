"""What /proc/PID/maps says about a JVM: its library, and the hsperfdata file that is really its own.

7f2b5c000000-7f2b5d3c1000 r-xp 003e5000 08:01 917534   /usr/lib/jvm/java-17/lib/server/libjvm.so
7f2b60210000-7f2b60218000 rw-s 00000000 08:01 1046541  /tmp/hsperfdata_app/4242 (deleted)
"""

from __future__ import annotations

from typing import NamedTuple

_DELETED = " (deleted)"


class Mapping(NamedTuple):
    """A file that is mapped. `addresses` is its name below /proc/PID/map_files."""

    addresses: str
    inode: int
    path: str
    deleted: bool


class JvmMaps(NamedTuple):
    """What of a JVM is mapped; None where it is not. OpenJ9 has a libjvm.so too, beside its own library."""

    libjvm: Mapping | None
    openj9: Mapping | None
    hsperfdata: Mapping | None

    @property
    def is_jvm(self) -> bool:
        """Whether any of it is there: a JVM linked into its launcher still maps its hsperfdata file."""
        return any((self.libjvm, self.openj9, self.hsperfdata))


def parse_jvm_maps(text: str) -> JvmMaps:
    """Find the three; a JVM has hundreds of lines, so only those are looked at. A line cut short counts as not there."""
    return JvmMaps(_find(text, "/libjvm.so"), _find(text, "/libj9vm"), _find(text, "/hsperfdata_"))


def _find(text: str, needle: str) -> Mapping | None:
    at = text.find(needle)
    if at < 0:
        return None
    end = text.find("\n", at)
    words = text[text.rfind("\n", 0, at) + 1 : end if end >= 0 else len(text)].split(None, 5)
    if len(words) < 6 or not words[4].isdigit():
        return None
    path = words[5]
    deleted = path.endswith(_DELETED)
    return Mapping(words[0], int(words[4]), path.removesuffix(_DELETED), deleted)
