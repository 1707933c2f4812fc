r"""The Java heap as an hs_err file lists it: the section `Heap:`, in the form of `jcmd PID GC.heap_info`.

Heap address: 0x000000008b200000, size: 1870 MB, Compressed Oops mode: 32-bit
Heap:
 garbage-first heap   total reserved 1914880K, committed 122880K, used 1156K [0x000000008b200000, 0x0000000100000000)
 PSYoungGen      total 295936K, used 102999K [0x00000000eab00000, …)            one line for each generation
 98304M total, 98304M committed, 78973M used                                    Shenandoah
 ZHeap           used 18M, capacity 128M, max capacity 512M
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.jvm.dumps.heap_info import parse_heap_info
from opskit.jvm.logs.crashes.record import Heap
from opskit.quantities import bytes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.logs.crashes.sections import Sections

_COMMITTED = (
    re.compile(r"\bcommitted ([0-9]{1,15}[KMG])\b"),
    re.compile(r"(?<![0-9])([0-9]{1,15}[KMG]) committed\b"),
    re.compile(r"(?<!max )\bcapacity ([0-9]{1,15}[KMG])\b"),
    re.compile(r"\btotal ([0-9]{1,15}[KMG])\b"),
)
_MAXIMUM = (
    re.compile(r"\bmax capacity ([0-9]{1,15}[KMG])\b"),
    re.compile(r"(?<![0-9])([0-9]{1,15}[KMG]) max\b"),
    re.compile(r"\btotal reserved ([0-9]{1,15}[KMG])\b"),
)
_SIZE = re.compile(r"\bsize: ([0-9]{1,15}) ?([KMG])B\b")
_NOT_JAVA = ("Metaspace", "class space", "PSPermGen", "compacting perm", "concurrent-mark-sweep perm")
_INDENTED = " Shenandoah Heap"  # from JDK 25 on, with all lines below it
_MOST_LINES = 40


def parse_heap(found: Sections) -> Heap:
    """The heap; without its section, at most its largest size is known."""
    lines = [line for line in found.below("Heap") if not line.startswith("|")]
    own = [line for line in lines if not line.lstrip().startswith(_NOT_JAVA)]
    if own and own[0].startswith(_INDENTED):
        own = [line[1:] for line in own]
    info = parse_heap_info("\n".join(own))
    committed = [_first(line, _COMMITTED) for line in own if not line.startswith("   ")]
    known = [each for each in committed if each is not None]
    maximum = next(filter(None, (_first(line, _MAXIMUM) for line in own)), None)
    return Heap(
        tuple(lines[:_MOST_LINES]),
        info.collector,
        info.used_bytes,
        sum(known) if known else None,
        maximum if maximum is not None else _address_size(found),
    )


def _first(line: str, patterns: Sequence[re.Pattern[str]]) -> int | None:
    match = next(filter(None, (pattern.search(line) for pattern in patterns)), None)
    return bytes_of(match[1]) if match else None


def _address_size(found: Sections) -> int | None:
    line = found.line("Heap address") or found.line("heap address") or ""
    match = _SIZE.search(line)
    return bytes_of(match[1] + match[2]) if match else None
