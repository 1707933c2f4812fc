"""Memory outside of meminfo's own lines: zram devices and the ZFS ARC.

/sys/block/zram0/mm_stat (Documentation/admin-guide/blockdev/zram.rst): original size, compressed size, memory used, ...

    104857600  31457280  33554432  0  33554432  0  0  0  0

/proc/spl/kstat/zfs/arcstats (arc_summary(1)): a head of two lines, then `name type value`:

    size                            4    17179869184
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.lines import lines_of
from opskit.quantities import integer

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS


def read_zram_bytes(fs: ProcFS) -> int:
    """The memory that compressed block devices (swap or disks) take; 0 without any."""
    names = (name for name in fs.names_root("sys", "block") if name.startswith("zram"))
    return sum(fs.maybe_root(_memory_used, "sys", "block", name, "mm_stat", default=0) for name in names)


def read_arc_bytes(fs: ProcFS) -> int | None:
    """The size of ZFS's cache, parts of it in slabs; None without ZFS."""
    return fs.maybe(_arc_size, "spl", "kstat", "zfs", "arcstats")


def _memory_used(text: str) -> int:
    words = text.split()
    return (integer(words[2]) or 0) if len(words) > 2 else 0


def _arc_size(text: str) -> int | None:
    rows = (line.split() for line in lines_of(text))
    return next((integer(words[2]) for words in rows if len(words) == 3 and words[0] == "size"), None)
