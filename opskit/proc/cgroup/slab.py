"""The slab memory of each memory cgroup: memory.stat of v2 (Documentation/admin-guide/cgroup-v2.rst), kmem files of v1.

v2's memory.stat includes the children of a cgroup:

    slab_reclaimable 223346688

v1's memory.stat has no slabs. memory.kmem.slabinfo (Linux 3.8 to 5.8; empty since) lists the caches of that cgroup alone,
in the format of /proc/slabinfo; memory.kmem.usage_in_bytes is all kernel memory, stacks included: an upper bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.cgroup.limits import memory_limit_of
from opskit.proc.cgroup.tree import controller_root, is_machine_root
from opskit.proc.files.slabinfo import Slab, parse_slabinfo
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.proc.cgroup.tree import Level
    from opskit.proc.fs import ProcFS


class CgroupSlab(NamedTuple):
    """One memory cgroup. Bytes include its children; `caches` (v1) do not.

    `kernel_bytes` (v1): an upper bound of its slabs. `limit_bytes`: None for no limit. `reclaims`: it has memory.reclaim.
    """

    path: str
    directory: str
    slab_reclaimable_bytes: int | None
    kernel_bytes: int | None
    usage_bytes: int | None
    limit_bytes: int | None
    caches: tuple[Slab, ...] = ()
    reclaims: bool = False


def read_cgroup_slabs(fs: ProcFS) -> list[CgroupSlab]:
    """Every memory cgroup below the machine's root; none where the controller is not mounted."""
    top = controller_root(fs, "memory")
    if top is None:
        return []
    found, waiting = [], [top]
    while waiting:  # without recursion: they may nest deeper than Python's stack
        level = waiting.pop()
        if level is not top or not is_machine_root(fs, top):
            found.append(_read(fs, level))
        waiting += reversed(level.children(fs))
    return found


def _read(fs: ProcFS, level: Level) -> CgroupSlab:
    place, limit = (level.path, level.directory), memory_limit_of(fs, level)
    numbers = (limit.usage, limit.limit_bytes) if limit else (None, None)
    if level.version == 2:
        slab = level.table(fs, "memory.stat").get("slab_reclaimable")
        return CgroupSlab(*place, slab, None, *numbers, reclaims=level.has(fs, "memory.reclaim"))
    kernel = level.number(fs, "memory.kmem.usage_in_bytes")
    return CgroupSlab(*place, None, kernel, *numbers, _caches(level.load(fs, "memory.kmem.slabinfo")))


def _caches(text: str | None) -> tuple[Slab, ...]:
    """Charged caches; none where the kernel leaves the file empty (or writes the header only)."""
    if text is None or all(line.startswith(("#", "slabinfo")) for line in text.splitlines()):
        return ()
    return tuple(parse_slabinfo(text + "\n"))
