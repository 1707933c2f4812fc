"""The answer to `jcmd PID GC.heap_info` (JDK 9 and later): the heap and Metaspace in use now. It needs no safepoint.

 garbage-first heap   total 8192K, used 883K [0x00000000f8000000, 0x0000000100000000)
  region size 1024K, 1 young (1024K), 0 survivors (0K)
 Metaspace       used 3970K, capacity 4574K, committed 4864K, reserved 1056768K
  class space    used 369K, capacity 398K, committed 512K, reserved 1048576K

Serial and Parallel have a line for each generation, each followed by its spaces, whose use is in percent. Shenandoah
writes `128M max, 128M soft max, 40960K committed, 5632K used`, ZGC `ZHeap           used 18M, capacity 128M, ...`.
"""

from __future__ import annotations

import re

from opskit.quantities import bytes_of
from opskit.records import NamedTuple

_USED = re.compile(r"\bused ([0-9]{1,15}[KMGB])\b|(?<![0-9])([0-9]{1,15}[KMGB]) used\b")
_COLLECTORS = {
    "garbage-first": "G1", "def": "Serial", "tenured": "Serial", "DefNew": "Serial", "PSYoungGen": "Parallel",
    "ParOldGen": "Parallel", "PSOldGen": "Parallel", "ZHeap": "ZGC", "Shenandoah": "Shenandoah", "Epsilon": "Epsilon",
    "par": "CMS", "concurrent": "CMS",
}  # fmt: skip
_MOST_CHARACTERS = 1 << 16  # a real one has some hundred


class HeapInfo(NamedTuple):
    """Bytes in use: the heap with its garbage, Metaspace with its class space, the class space alone. None: not in the answer."""

    collector: str | None
    used_bytes: int | None
    metaspace_bytes: int | None
    class_space_bytes: int | None


def parse_heap_info(text: str) -> HeapInfo:
    """Parse the answer; unknown lines are left out."""
    collector = heap = metaspace = class_space = None
    for line in text[:_MOST_CHARACTERS].splitlines():
        words = line.split(None, 2)
        match = _USED.search(line)
        collector = collector or (_COLLECTORS.get(words[0]) if words else None)
        used = bytes_of((match[1] or match[2]).removesuffix("B")) if match else None
        if used is None:
            continue
        if words[0] == "Metaspace":
            metaspace = used
        elif words[:2] == ["class", "space"]:
            class_space = used
        elif metaspace is None and not line.startswith("   "):  # deeper lines are parts of those above
            heap = (heap or 0) + used
    return HeapInfo(collector, heap, metaspace, class_space)
