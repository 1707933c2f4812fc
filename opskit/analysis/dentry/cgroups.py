"""The slab memory of each memory cgroup, without that of its children."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opskit import shell
from opskit.analysis.dentry.caches import classify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.proc.cgroup.slab import CgroupSlab


class CgroupShare(NamedTuple):
    """A memory cgroup's slab. `own_…`: without its children; `kernel_bytes`: v1's upper bound. `limit_bytes` None: no limit."""

    path: str
    directory: str
    slab_reclaimable_bytes: int | None
    own_slab_reclaimable_bytes: int | None
    dentry_inode_bytes: int | None
    kernel_bytes: int | None
    usage_bytes: int | None
    limit_bytes: int | None
    reclaims: bool

    @property
    def reclaim_command(self) -> str | None:
        """The command that makes this cgroup give memory back (cgroup v2 since Linux 5.19)."""
        own = self.own_slab_reclaimable_bytes
        if not self.reclaims or not own:
            return None
        return shell.command("echo", own, shell.Syntax(">"), f"{self.directory}/memory.reclaim")


def cgroup_shares(cgroups: Sequence[CgroupSlab], page_bytes: int) -> list[CgroupShare]:
    """The cgroups by their own slab, largest first, without those that hold none."""
    children: dict[str, int] = {}
    for group in cgroups:
        parent = group.path.rpartition("/")[0] or "/"
        children[parent] = children.get(parent, 0) + (group.slab_reclaimable_bytes or group.kernel_bytes or 0)
    shares = []
    for group in cgroups:
        total = group.slab_reclaimable_bytes if group.kernel_bytes is None else group.kernel_bytes
        own = None if total is None else max(total - children.get(group.path, 0), 0)
        caches = classify(group.caches, {}, page_bytes)
        share = CgroupShare(
            group.path,
            group.directory,
            group.slab_reclaimable_bytes,
            own if group.kernel_bytes is None else None,
            sum(cache.size_bytes for cache in caches if cache.kind != "other") if caches else None,
            group.kernel_bytes,
            group.usage_bytes,
            group.limit_bytes,
            group.reclaims,
        )
        if own or share.dentry_inode_bytes:
            shares.append((-(own or 0), share.path, share))
    return [share for _, _, share in sorted(shares, key=lambda entry: entry[:2])]
