"""Memory outside of meminfo's own lines: zram devices and the ZFS ARC.

/sys/block/zram0/mm_stat (Documentation/admin-guide/blockdev/zram.rst): original size, compressed size, memory used, ...

    104857600  31457280  33554432  0  33554432  0  0  0  0

/proc/spl/kstat/zfs/arcstats (arc_summary(1)): a head of two lines, then `name type value`:

    c_min                           4    1073741824
    size                            4    17179869184
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.lines import lines_of
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS


class Arc(NamedTuple):
    """The size of the ARC, and the size down to which it shrinks when memory is needed."""

    bytes: int
    least_bytes: int


def read_zram_bytes(fs: ProcFS) -> int:
    """The memory that compressed block devices (swap or disks) take; 0 without any."""
    names = (name for name in fs.names_root("sys", "block") if name.startswith("zram"))
    return sum(fs.maybe_root(_memory_used, "sys", "block", name, "mm_stat", default=0) for name in names)


def read_arc(fs: ProcFS) -> Arc | None:
    """ZFS's cache, parts of it in slabs; None without ZFS."""
    return fs.maybe(_arc, "spl", "kstat", "zfs", "arcstats")


def _memory_used(text: str) -> int:
    words = text.split()
    return (integer(words[2]) or 0) if len(words) > 2 else 0


def _arc(text: str) -> Arc | None:
    rows = (line.split() for line in lines_of(text))
    values = {words[0]: integer(words[2]) for words in rows if len(words) == 3}
    size = values.get("size")
    return None if size is None else Arc(size, values.get("c_min") or 0)
