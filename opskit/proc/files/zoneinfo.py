"""/proc/zoneinfo (proc_zoneinfo(5), mm/vmstat.c): of each zone, among many others, what each CPU keeps in a list of its own.

Node 0, zone   Normal
  pagesets
    cpu: 0
              count:    3854
              high:     53348
"""

from __future__ import annotations

import re

from opskit.quantities import integer

_COUNT = r"^ +count: +([0-9]{1,19})$"


def parse_cpu_free_pages(text: str) -> int:
    """Free pages in the lists of the CPUs: neither in MemFree nor in MemAvailable. Since Linux 6.7 they may be an eighth of RAM."""
    return sum(integer(count) or 0 for count in re.findall(_COUNT, text, re.MULTILINE))
