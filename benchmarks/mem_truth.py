"""What the memory of a JVM really holds: NMT's detail ranges, and the pages of them that are present in /proc/PID/pagemap.

The JVM needs -XX:NativeMemoryTracking=detail. NMT alone counts what is committed, not what is in memory.
"""

from __future__ import annotations

import bisect
import ctypes
import mmap
import os
import re
import struct
import time
from array import array
from collections import Counter
from typing import TYPE_CHECKING

import nmt

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE_BYTES = 4096
_NUMBER = (1 << 55) - 1  # of an entry of pagemap: the page frame
# NMT's names -> opskit's rows. JDK 11 says Class for metaspace, too; all others are structures of the JVM.
_ROWS = {
    "Java Heap": "java-heap",
    "Class": "metaspace",
    "Metaspace": "metaspace",
    "Unknown": "metaspace",  # JDK 17 forgets to name its compressed class space
    "Code": "code-cache",
    "GC": "gc",
    "Thread Stack": "thread-stacks",
    "Shared class space": "cds",
}
_MARK_STACKS = (0x150000000000, 0x160000000000, "gc")  # of JDK 11's ZGC, which maps them without NMT
_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \d+ *(.*)\n(?:[A-Z].*\n)*?Rss: +(\d+) kB", re.MULTILINE)
_LIBRARY = re.compile(r"\.so(\.|$)|/bin/")


def rows(pid: int) -> Counter[str]:
    """The resident bytes of each row; `malloc` is the anonymous memory that neither NMT nor a file explains, `rss` the kernel's sum."""
    named = ((start, end, _ROWS.get(name, "vm-structures")) for start, end, name in nmt.ranges(pid))
    ranges = sorted([*named, _MARK_STACKS])
    found: Counter[str] = Counter()
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as maps:
        mappings = _MAPPING.findall(maps.read())
    zero = _zero_page()
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pages:
        bss_end = 0
        for first, last, name, rss in mappings:
            start, end = int(first, 16), int(last, 16)
            if _LIBRARY.search(name):
                bss_end = _end_of_data(name, mappings)
            known = ranges if name or start >= bss_end else sorted([*ranges, (start, min(end, bss_end), "libraries")])
            for low, high, kind in _cut(start, end, known, _by_name(name)) if rss != "0" else ():
                found[kind] += _present(pages.fileno(), low, high, zero)
            found["rss"] += int(rss) * 1024
    return found


def _end_of_data(name: str, mappings: list[tuple[str, ...]]) -> int:
    """Where a library's data without a file (.bss) end: the kernel joins them with an allocator's block that follows."""
    base = next(int(first, 16) for first, _, other, _ in mappings if other == name)
    with open(name, "rb") as file:
        head = file.read(8192)
    at, size, number = (*struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54))
    parts = [struct.unpack_from("<IIQQQQQQ", head, at + i * size) for i in range(number)]
    loaded = [(part[3], part[3] + part[6]) for part in parts if part[0] == 1]  # PT_LOAD: address, size in memory
    end = max(end for _, end in loaded) + base - min(start for start, _ in loaded) // PAGE_BYTES * PAGE_BYTES
    return -(-end // PAGE_BYTES) * PAGE_BYTES


def _zero_page() -> int:
    """The number of the page that the kernel maps where memory is read before it is written: in pagemap, but not in RSS. 0 without root."""
    with mmap.mmap(-1, PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as page:
        page[0]
        address = ctypes.addressof(ctypes.c_char.from_buffer(page))
        with open("/proc/self/pagemap", "rb", buffering=0) as pages:
            return int.from_bytes(os.pread(pages.fileno(), 8, address // PAGE_BYTES * 8), "little") & _NUMBER


def _by_name(name: str) -> str:
    """The row of a mapping outside of NMT's ranges."""
    if name.endswith(".jsa"):
        return "cds"
    if _LIBRARY.search(name):
        return "libraries"
    if name == "[stack]":
        return "thread-stacks"
    if "java_heap" in name:
        return "java-heap"
    if name in ("", "[heap]"):
        return "malloc"
    return "kernel" if name.startswith("[") else "mapped-files"


def _cut(start: int, end: int, ranges: list[tuple[int, int, str]], row: str) -> Iterator[tuple[int, int, str]]:
    """The parts of a mapping: those in NMT's ranges, and what is between them. A file outside of the heap keeps its row."""
    at = start
    first = max(0, bisect.bisect_right(ranges, (start, 1 << 64, "")) - 1)
    for low, high, kind in ranges[first:]:
        if low >= end:
            break
        low, high = max(low, at), min(high, end)
        if low >= high:
            continue
        if at < low:
            yield at, low, row
        yield low, high, kind if row == "malloc" or kind == "java-heap" else row
        at = high
    if at < end:
        yield at, end, row


def _present(pagemap: int, start: int, end: int, zero: int) -> int:
    """The bytes of these addresses that are in memory."""
    found, page, last = 0, start // PAGE_BYTES, end // PAGE_BYTES
    while page < last:
        entries = array("Q", os.pread(pagemap, min(last - page, 1 << 17) * 8, page * 8))
        if not entries:
            break
        found += sum(entry >> 63 and not (zero and entry & _NUMBER == zero) for entry in entries)
        page += len(entries)
    return found * PAGE_BYTES


def settled(pid: int) -> None:
    """Wait until the resident memory stays the same for half a second."""
    last, deadline = -1, time.monotonic() + 10
    while (now := _rss(pid)) != last and time.monotonic() < deadline:
        last = now
        time.sleep(0.5)


def _rss(pid: int) -> int:
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as sums:
        return int(re.search(r"^Rss: +(\d+) kB", sums.read(), re.MULTILINE)[1]) * 1024
