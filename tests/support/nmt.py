"""Native Memory Tracking as truth: which addresses a JVM with -XX:NativeMemoryTracking=detail uses for what."""

from __future__ import annotations

import re

from opskit.jvm.attach.client import AttachClient
from opskit.proc.fs import ProcFS
from opskit.proc.pagemap import PageMap

OPTION = "-XX:NativeMemoryTracking=detail"
# NMT's names -> opskit's kinds.
KINDS = {
    "Java Heap": "java-heap", "Metaspace": "metaspace", "Class": "class-space", "Code": "code-cache", "GC": "gc",
    "Shared class space": "cds", "Unknown": "class-space",  # JDK 17 forgets to name it
}  # fmt: skip
_RESERVED = re.compile(
    r"^\[0x([0-9a-f]+) - 0x([0-9a-f]+)\] reserved (?:and committed )?\d+KB for (\S.*?)(?: from)?$", re.MULTILINE
)


def ranges(pid: int) -> list[tuple[int, int, str]]:
    """(start, end, NMT's name) of all that it knows."""
    detail = AttachClient(ProcFS(), pid).jcmd("VM.native_memory detail")  # with another scale JDK 11 crashes
    return [(int(start, 16), int(end, 16), name) for start, end, name in _RESERVED.findall(detail)]


def resident_bytes(pid: int) -> dict[str, int]:
    """The bytes in memory of each kind."""
    pages, found = PageMap(ProcFS(), pid), dict.fromkeys(KINDS.values(), 0)
    for start, end, name in ranges(pid):
        if name in KINDS:
            found[KINDS[name]] += pages.resident_bytes(start, end)
    pages.close()
    return found
