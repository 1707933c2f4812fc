"""What needs attention, and the commands that help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.dentry.usage import share
from opskit.analysis.dentry.verdict import LARGE_SHARE, LITTLE_SHARE, MOSTLY, mostly
from opskit.analysis.finding import HOST, Entity, Finding
from opskit.quantities import percent, size, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.dentry.usage import Usage

_CULPRIT = "opskit dentry --culprit"
_RECLAIM_FROM_BYTES = 16 << 20  # less is not worth a command


def findings(usage: Usage, max_percent: float | None = None) -> list[Finding]:
    """The findings of all rules. `max_percent` (--check): of RAM, for dentries and inodes; then the others are notes."""
    others = [finding for rule in (_negative, _cgroups, _pressure, _dropped) for finding in rule(usage)]
    if max_percent is None:
        return others
    return [*_above_share(usage, max_percent), *(finding._replace(severity="note") for finding in others)]


def _above_share(usage: Usage, max_percent: float) -> Iterator[Finding]:
    both = usage.dentry_and_inode_bytes
    part = usage.of_ram(both)
    if part is not None and part * 100 > max_percent:
        yield Finding(
            "dentry-share", "error", HOST,
            f"dentries and inodes take {percent(part)} of RAM, more than {max_percent:g} %",
            f"slabinfo: {size(both)} of {size(usage.ram_bytes)}", next=_CULPRIT, share=part,
        )  # fmt: skip


def _negative(usage: Usage) -> Iterator[Finding]:
    negative = usage.negative
    if negative is None or not mostly(negative, usage.dentries):
        return
    held = negative * usage.object_bytes
    part = usage.of_ram(held)
    if part is not None and part >= LITTLE_SHARE:
        yield Finding(
            "dentry-negative", "warning", HOST,
            f"{whole(negative)} negative dentries (about {size(held)}) stand for files that are not there",
            "/proc/sys/fs/dentry-state", next=_CULPRIT, share=part,
        )  # fmt: skip


def _cgroups(usage: Usage) -> Iterator[Finding]:
    for group in usage.groups:
        slab = group.slab_reclaimable_bytes
        slab = group.dentry_inode_bytes if slab is None else slab
        part = share(slab, group.limit_bytes)
        if part is not None and part >= MOSTLY:
            yield Finding(
                "dentry-cgroup", "warning", Entity("cgroup", group.path, inside=HOST),
                f"reclaimable slab takes {percent(part)} of this cgroup's memory limit",
                f"{size(slab)} of {size(group.limit_bytes)}", group.reclaim_command, share=part,
            )  # fmt: skip


def _pressure(usage: Usage) -> Iterator[Finding]:
    if usage.vfs_cache_pressure == 0:
        yield Finding(
            "dentry-pressure", "warning", HOST,
            "vm.vfs_cache_pressure is 0: the kernel never reclaims dentries and inodes, and can run out of memory",
            "/proc/sys/vm/vfs_cache_pressure", "sysctl vm.vfs_cache_pressure=100",
        )  # fmt: skip


def _dropped(usage: Usage) -> Iterator[Finding]:
    if usage.drop_slab_count:
        yield Finding(
            "dentry-dropped", "note", HOST,
            f"dentries and inodes were dropped {times(usage.drop_slab_count)} since boot",
            "/proc/vmstat: drop_slab", next="grep -rs drop_caches /etc/cron* /etc/systemd /var/spool/cron",
        )  # fmt: skip


def times(count: int | None) -> str:
    """`never`, `once`, `31 times`; `unknown` for None."""
    if count is None:
        return "unknown"
    return ("never", "once")[count] if count < 2 else f"{count:,} times"


def exceeds(usage: Usage, max_percent: float) -> bool | None:
    """Whether dentries and inodes take more than that of RAM; None where that is unknown.

    SReclaimable, which includes both, is an upper bound where slabinfo cannot be read.
    """
    part = usage.of_ram(usage.dentry_and_inode_bytes)
    if part is not None:
        return part * 100 > max_percent
    bound = usage.of_ram(usage.reclaimable_bytes)
    return False if bound is not None and bound * 100 <= max_percent else None


def ways(usage: Usage) -> list[str]:
    """What to type, the gentlest command first."""
    found = []
    large = (usage.of_ram(usage.dentry_bytes) or 0) >= LARGE_SHARE
    if mostly(usage.negative, usage.dentries) or (large and usage.negative is None):
        found.append(f"find the program that looks for absent files: {_CULPRIT}")
    # Linux before 2.6.19 does not report what of the slabs is reclaimable.
    to_free = usage.dentry_bytes if usage.reclaimable_bytes is None else usage.reclaimable_bytes
    if (usage.of_ram(to_free) or 0) < LITTLE_SHARE:
        return found
    pressure = usage.vfs_cache_pressure
    if pressure is not None:
        more = shell.command("sysctl", f"vm.vfs_cache_pressure={100 if pressure < 100 else pressure * 2}")
        found.append(f"let the kernel prefer these caches: {more} (now {pressure})")
    largest = usage.groups[0] if usage.groups else None
    if largest and largest.reclaim_command and (largest.own_slab_reclaimable_bytes or 0) >= _RECLAIM_FROM_BYTES:
        found.append(f"reclaim from one cgroup: {largest.reclaim_command}")
    if usage.deletes == 0 and mostly(usage.negative, usage.dentries):
        found.append("let deleted files leave no negative entry: sysctl fs.dentry-negative=1")
    found.append("drop all that is unused, host-wide: opskit dentry --drop")
    return found
