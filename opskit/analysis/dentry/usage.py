"""How much the dentry and inode caches hold, how much of it the kernel can reclaim, and how fast they grow."""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.dentry.caches import Cache, classify, count_inodes, of_kind
from opskit.analysis.slope import slope
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.collect.dentry import Facts
    from opskit.proc.cgroup.slab import CgroupSlab

DENTRY_BYTES = 192  # sizeof(struct dentry) on 64-bit machines, where slabinfo cannot be read


class CgroupShare(NamedTuple):
    """A memory cgroup's slab. `own_…`: without its children; None in v1."""

    group: CgroupSlab
    own_slab_reclaimable_bytes: int | None
    dentry_inode_bytes: int | None

    @property
    def reclaim_command(self) -> str | None:
        """The command that reclaims memory from this cgroup (cgroup v2 since Linux 5.19)."""
        words = ("echo", self.own_slab_reclaimable_bytes, shell.Syntax(">"), f"{self.group.directory}/memory.reclaim")
        return shell.command(*words) if self.group.reclaims and self.own_slab_reclaimable_bytes else None


class Usage(NamedTuple):
    """Counts and bytes; None where the kernel does not give them, or does not let us read them.

    `dentry_bytes`: the slab, or an estimate by the count. `groups`: largest own slab first. `deletes`: fs.dentry-negative.
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
        dentries, inodes = self.dentry_slab_bytes, self.inode_slab_bytes
        return None if dentries is None or inodes is None else dentries + inodes


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


def cgroup_shares(cgroups: Sequence[CgroupSlab], page_bytes: int) -> list[CgroupShare]:
    """The cgroups by their own slab, largest first, without those that hold none."""
    children: dict[str, int] = defaultdict(int)
    for group in cgroups:
        children[group.path.rpartition("/")[0] or "/"] += group.slab_reclaimable_bytes or group.kernel_bytes or 0
    shares = []
    for group in cgroups:
        total = group.slab_reclaimable_bytes if group.kernel_bytes is None else group.kernel_bytes
        own = None if total is None else max(total - children[group.path], 0)
        caches = classify(group.caches, {}, page_bytes)
        held = sum(cache.size_bytes for cache in caches if cache.kind != "other") if caches else None
        if own or held:
            found = CgroupShare(group, own if group.kernel_bytes is None else None, held)
            shares.append((-(own or 0), group.path, found))
    return [found for _, _, found in sorted(shares, key=itemgetter(0, 1))]


WATCHED = ("dentries", "unused", "negative", "dentry_slab_bytes", "inode_slab_bytes", "reclaimable_bytes")


class Sample(NamedTuple):
    """One sample: when (s since the first), the numbers that WATCHED names, and the bytes of each cache."""

    at_s: float
    numbers: Mapping[str, int | None]
    cache_bytes: Mapping[str, int]


def growth_per_min(samples: Sequence[Sample]) -> dict[str, float | None]:
    """The growth per minute of each number in WATCHED (a least-squares slope); None with fewer than two samples."""
    return {name: _per_min((one.at_s, one.numbers[name]) for one in samples) for name in WATCHED}


def cache_growth_per_min(samples: Sequence[Sample]) -> dict[str, float | None]:
    """The bytes per minute that each cache grows by."""
    names = dict.fromkeys(name for one in samples for name in one.cache_bytes)
    return {name: _per_min((one.at_s, one.cache_bytes.get(name)) for one in samples) for name in names}


def _per_min(points: Iterable[tuple[float, int | None]]) -> float | None:
    per_s = slope([(at_s, number) for at_s, number in points if number is not None])
    return None if per_s is None else per_s * 60
