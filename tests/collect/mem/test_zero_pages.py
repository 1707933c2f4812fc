"""Pages that were read before they were written: present in pagemap, but no memory of the process."""

from __future__ import annotations

import ctypes
import mmap
import os

from opskit.collect.mem.accounting import account
from opskit.proc.files.smaps import parse_smaps
from opskit.proc.fs import ProcFS
from opskit.proc.memory import PAGE_BYTES
from opskit.proc.pagemap import PageMap
from opskit.proc.ranges import Range

MIB = 1 << 20


def test_a_table_that_was_only_read():
    """None of the mapping's memory is counted as the table's."""
    with mmap.mmap(-1, 8 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as held:
        view = (ctypes.c_char * len(held)).from_buffer(held)
        start = ctypes.addressof(view)
        for at in range(0, 2 * MIB, PAGE_BYTES):
            assert held[at] == 0
        held[5 * MIB : 6 * MIB] = b"x" * MIB
        fs = ProcFS()
        pagemap = PageMap(fs, os.getpid())
        present = pagemap.resident_bytes(start, start + 2 * MIB)
        around = [
            one for one in fs.load(parse_smaps, os.getpid(), "smaps") if one.start < start + 8 * MIB and one.end > start
        ]
        rows, _ = account(around, [Range(start, start + 2 * MIB, "gc")], pagemap)
        del view
    found = {row.kind: row.usage.rss_bytes for row in rows}
    assert present == 2 * MIB
    assert found["gc"] == 0
    assert found["unnamed"] == sum(one.usage.rss_bytes for one in around) >= MIB
