"""How much the dentry and inode caches hold, and how much of it the kernel can reclaim."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opskit.analysis.dentry.caches import Cache, classify, count_inodes, of_kind
from opskit.analysis.dentry.cgroups import CgroupShare, cgroup_shares

if TYPE_CHECKING:
    from opskit.collect.dentry import Facts

DENTRY_BYTES = 192  # sizeof(struct dentry) on 64-bit machines, where slabinfo cannot be read


class Usage(NamedTuple):
    """Counts and bytes; None where the kernel does not give them, or does not let us read them.

    `dentry_bytes`: the dentry slab, or an estimate by the count. `groups`: memory cgroups, largest own slab first.
    `deletes`: sysctl fs.dentry-negative.
    """

    dentries: int | None = None
    unused: int | None = None
    negative: int | None = None
    in_use: int | None = None
    inodes: int | None = None
    dentry_slab_bytes: int | None = None
    inode_slab_bytes: int | None = None
    dentry_bytes: int | None = None
    object_bytes: int = DENTRY_BYTES
    reclaimable_bytes: int | None = None
    unreclaimable_bytes: int | None = None
    available_bytes: int | None = None
    free_bytes: int | None = None
    page_cache_bytes: int | None = None
    ram_bytes: int | None = None
    vfs_cache_pressure: int | None = None
    deletes: int | None = None
    drop_slab_count: int | None = None
    drop_pagecache_count: int | None = None
    caches: tuple[Cache, ...] | None = None
    groups: tuple[CgroupShare, ...] = ()

    def of_ram(self, amount: int | None) -> float | None:
        """An amount of bytes as a share of RAM, 0 to 1."""
        return share(amount, self.ram_bytes)

    @property
    def negative_share(self) -> float | None:
        """Negative dentries of all dentries, 0 to 1."""
        part = share(self.negative, self.dentries)
        return None if part is None else min(part, 1.0)  # the kernel counts one after the other

    @property
    def dentry_and_inode_bytes(self) -> int | None:
        """Both slabs together; None unless both are known."""
        if self.dentry_slab_bytes is None or self.inode_slab_bytes is None:
            return None
        return self.dentry_slab_bytes + self.inode_slab_bytes


def share(part: int | None, whole: int | None) -> float | None:
    """A part of a whole, 0 to 1; None where either is unknown."""
    return None if part is None or not whole else part / whole


def measure(facts: Facts) -> Usage:
    """The numbers that the facts give."""
    caches = None if facts.slabs is None else classify(facts.slabs, facts.merged, facts.page_bytes)
    found, inode_caches = of_kind(caches, "dentry"), of_kind(caches, "inode")
    state, meminfo = facts.state, facts.meminfo
    cached, buffers = meminfo.get("Cached"), meminfo.get("Buffers")
    # Without dentry-state: the objects in use of the cache, unless other objects share it.
    alone = [cache.active_objects for cache in found if not cache.shared_with]
    dentries = state.dentries if state else alone[0] if alone else None
    slab_bytes = sum(cache.size_bytes for cache in found) if found else None
    return Usage(
        dentries=dentries,
        unused=state.unused if state else None,
        negative=state.negative if state else None,
        in_use=max(state.dentries - state.unused, 0) if state else None,
        inodes=None if caches is None else count_inodes(caches),
        dentry_slab_bytes=slab_bytes,
        inode_slab_bytes=sum(cache.size_bytes for cache in inode_caches) if inode_caches else None,
        dentry_bytes=slab_bytes if slab_bytes is not None or dentries is None else dentries * DENTRY_BYTES,
        object_bytes=found[0].object_bytes if found else DENTRY_BYTES,
        reclaimable_bytes=meminfo.get("SReclaimable"),
        unreclaimable_bytes=meminfo.get("SUnreclaim"),
        available_bytes=meminfo.get("MemAvailable"),
        free_bytes=meminfo.get("MemFree"),
        page_cache_bytes=None if cached is None or buffers is None else cached + buffers,
        ram_bytes=meminfo.get("MemTotal"),
        vfs_cache_pressure=facts.vfs_cache_pressure,
        deletes=facts.dentry_negative,
        drop_slab_count=facts.vmstat.get("drop_slab"),
        drop_pagecache_count=facts.vmstat.get("drop_pagecache"),
        caches=caches,
        groups=tuple(cgroup_shares(facts.cgroups, facts.page_bytes)),
    )
