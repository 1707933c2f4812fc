"""Huge pages that are set aside (Documentation/admin-guide/mm/hugetlbpage.rst): /sys/kernel/mm/hugepages, a directory for each size.

/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages      512   all pages of this size
/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages    500   not in use
/sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages    12    of the free ones: promised to a mapping that has not touched them
/sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages 0     above what was asked for; they go back when they are free
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.proc.fs import ProcFS

_PLACE = ("sys", "kernel", "mm", "hugepages")
_FILES = ("nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages")
_KEYS = ("HugePages_Total", "HugePages_Free", "HugePages_Rsvd", "HugePages_Surp")


class HugePool(NamedTuple):
    """The huge pages of one size, counted in pages. `is_default`: vm.nr_hugepages sets this pool."""

    page_bytes: int
    total: int
    free: int
    promised: int
    surplus: int
    is_default: bool

    @property
    def bytes(self) -> int:
        """What the pool takes from the machine's memory, used or not."""
        return self.total * self.page_bytes

    @property
    def unused(self) -> int:
        """Pages that nobody uses, and that are promised to nobody."""
        return max(0, self.free - self.promised)


def read_huge_pools(fs: ProcFS, meminfo: Mapping[str, int]) -> tuple[HugePool, ...]:
    """The pools that have pages, the largest first. Without /sys only the default size is known, from meminfo."""
    default_bytes = meminfo.get("Hugepagesize", 0)
    pools = []
    for name in fs.names_root(*_PLACE):
        found = re.fullmatch(r"hugepages-([0-9]{1,12})kB", name)
        page_bytes = (integer(found[1]) or 0) * 1024 if found else 0
        numbers = [fs.maybe_root(lambda text: integer(text.strip()), *_PLACE, name, file) for file in _FILES]
        if page_bytes and numbers[0]:
            total, free, promised, surplus = (number or 0 for number in numbers)
            pools.append(HugePool(page_bytes, total, min(free, total), promised, surplus, page_bytes == default_bytes))
    if not pools and default_bytes and meminfo.get(_KEYS[0]):
        total, free, promised, surplus = (meminfo.get(key, 0) for key in _KEYS)
        pools.append(HugePool(default_bytes, total, min(free, total), promised, surplus, is_default=True))
    return tuple(sorted(pools, key=lambda pool: -pool.bytes))
