"""/proc/vmstat (mm/vmstat.c): a name and a number a line; which names there are depends on the kernel.

nr_slab_reclaimable 124593
drop_pagecache 1
drop_slab 2
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import signed


def parse_vmstat(text: str) -> dict[str, int]:
    """The numbers by name: events since boot, and nr_* counted in pages. Raises BadInput at any other line."""
    values = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, _, value = line.partition(" ")
        count = signed(value)
        if not name or count is None:
            raise BadInput("vmstat", "not `name number`", number, line)
        values[name] = count
    return values
