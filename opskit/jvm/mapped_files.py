"""The JVM's mappings in /proc/PID/maps: its library, and its own hsperfdata file.

7f2b5c000000-7f2b5d3c1000 r-xp 003e5000 08:01 917534   /usr/lib/jvm/java-17/lib/server/libjvm.so
7f2b60210000-7f2b60218000 rw-s 00000000 08:01 1046541  /tmp/hsperfdata_app/4242 (deleted)
"""

from __future__ import annotations

from opskit.proc.files.maps import Mapping, find_mapping
from opskit.records import NamedTuple


class JvmMaps(NamedTuple):
    """A JVM's mapped files; None: not mapped. OpenJ9 has a libjvm.so as well as its own library."""

    libjvm: Mapping | None
    openj9: Mapping | None
    hsperfdata: Mapping | None

    @property
    def is_jvm(self) -> bool:
        """Whether any is mapped: a JVM linked into its launcher still maps its hsperfdata file."""
        return any((self.libjvm, self.openj9, self.hsperfdata))


def parse_jvm_maps(text: str) -> JvmMaps:
    """Find the three files: the libraries loaded, which a debugger only reads, and hsperfdata writable, which jstat only reads."""
    return JvmMaps(
        find_mapping(text, "/libjvm.so", _is_loaded),
        find_mapping(text, "/libj9vm", _is_loaded),
        find_mapping(text, "/hsperfdata_", _is_written),
    )


def _is_loaded(permissions: str) -> bool:
    return "x" in permissions or "w" in permissions


def _is_written(permissions: str) -> bool:
    return permissions == "rw-s"
