"""What /proc/PID/maps says about a JVM: its library, and the hsperfdata file that is really its own.

7f2b5c000000-7f2b5d3c1000 r-xp 003e5000 08:01 917534   /usr/lib/jvm/java-17/lib/server/libjvm.so
7f2b60210000-7f2b60218000 rw-s 00000000 08:01 1046541  /tmp/hsperfdata_app/4242 (deleted)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Callable

_DELETED = " (deleted)"


class Mapping(NamedTuple):
    """A file that is mapped. `addresses` is its name below /proc/PID/map_files, the only place that tells which file it is.

    `inode` is a number that files of other file systems may have too; device numbers in maps are not those of stat on btrfs
    and overlayfs.
    """

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
    """Find the three; a JVM has hundreds of lines, so only those are looked at. A line cut short counts as not there.

    A library counts where it is loaded (with code, or data of its own), not where a debugger reads it; an hsperfdata file
    where it is written to: jstat maps those of others to read them.
    """
    return JvmMaps(
        _find(text, "/libjvm.so", _is_loaded),
        _find(text, "/libj9vm", _is_loaded),
        _find(text, "/hsperfdata_", _is_written),
    )


def _is_loaded(modes: str) -> bool:
    return "x" in modes or "w" in modes


def _is_written(modes: str) -> bool:
    return modes == "rw-s"


def _find(text: str, needle: str, accept: Callable[[str], bool]) -> Mapping | None:
    at = text.find(needle)
    while at >= 0:
        end = text.find("\n", at)
        if end < 0:
            end = len(text)
        words = text[text.rfind("\n", 0, at) + 1 : end].split(None, 5)
        inode = integer(words[4]) if len(words) == 6 else None
        if inode is not None and accept(words[1]):
            path = words[5]
            return Mapping(words[0], inode, path.removesuffix(_DELETED), path.endswith(_DELETED))
        at = text.find(needle, end)
    return None
