"""/proc/vmstat (mm/vmstat.c): a name and a number per line; the names depend on the kernel.

nr_slab_reclaimable 124593
drop_pagecache 1
drop_slab 2
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.quantities import signed

if TYPE_CHECKING:
    from collections.abc import Mapping

_PAGE_SIZES = (4 << 10, 8 << 10, 16 << 10, 64 << 10)
_SAME_MOMENT = 0.1  # the two files were read one after the other
_IN_MEMINFO = {"nr_slab_reclaimable": "SReclaimable", "nr_mapped": "Mapped", "nr_free_pages": "MemFree"}


def parse_vmstat(text: str) -> dict[str, int]:
    """The numbers by name: events since boot, and nr_* counted in pages. Raises BadInput."""
    values = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, _, value = line.partition(" ")
        count = signed(value)
        if not name or count is None:
            raise BadInput("vmstat", "not `name number`", number, line)
        values[name] = count
    return values


def page_size(vmstat: Mapping[str, int], meminfo: Mapping[str, int], default: int) -> int:
    """The page size of another machine, by what both files count; `default` where they disagree."""
    for pages_key, key in _IN_MEMINFO.items():
        pages = vmstat.get(pages_key, 0)
        for candidate in _PAGE_SIZES if pages > 0 else ():
            if abs(meminfo.get(key, 0) / pages / candidate - 1) < _SAME_MOMENT:
                return candidate
    return default
