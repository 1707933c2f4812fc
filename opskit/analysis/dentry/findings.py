"""What needs attention, and the commands that help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.dentry.usage import share
from opskit.analysis.dentry.verdict import LARGE_SHARE, LITTLE_SHARE, mostly
from opskit.analysis.finding import Finding
from opskit.quantities import percent, size, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.dentry.usage import Usage

_CULPRIT = "opskit dentry --culprit"
_RECLAIM_FROM_BYTES = 16 << 20  # less is not worth a command


def findings(usage: Usage, max_percent: float | None = None) -> list[Finding]:
    """The findings of all rules. `max_percent`: of RAM, what dentries and inodes together may take (--check)."""
    rules = (_above_share(usage, max_percent), _negative(usage), _cgroups(usage), _pressure(usage), _dropped(usage))
    return [finding for rule in rules for finding in rule]


def _above_share(usage: Usage, max_percent: float | None) -> Iterator[Finding]:
    both = usage.dentry_and_inode_bytes
    part = usage.of_ram(both)
    if max_percent is not None and part is not None and part * 100 > max_percent:
        yield Finding(
            "dentry-share", "error", "host",
            f"dentries and inodes take {percent(part)} of RAM, more than {max_percent:g} %",
            f"slabinfo: {size(both)} of {size(usage.ram_bytes)}", _CULPRIT,
        )  # fmt: skip


def _negative(usage: Usage) -> Iterator[Finding]:
    negative = usage.negative
    if negative is None or not mostly(negative, usage.dentries):
        return
    held = negative * usage.object_bytes
    if (usage.of_ram(held) or 0) >= LITTLE_SHARE:
        yield Finding(
            "dentry-negative", "warning", "host",
            f"{whole(negative)} negative dentries (about {size(held)}) stand for files that are not there",
            "/proc/sys/fs/dentry-state", _CULPRIT,
        )  # fmt: skip


def _cgroups(usage: Usage) -> Iterator[Finding]:
    for group in usage.groups:
        slab = group.dentry_inode_bytes if group.reclaimable_bytes is None else group.reclaimable_bytes
        if mostly(slab, group.limit_bytes):
            yield Finding(
                "dentry-cgroup", "warning", group.path,
                f"reclaimable slab takes {percent(share(slab, group.limit_bytes))} of this cgroup's limit",
                f"{size(slab)} of {size(group.limit_bytes)}", group.reclaim_command,
            )  # fmt: skip


def _pressure(usage: Usage) -> Iterator[Finding]:
    if usage.vfs_cache_pressure == 0:
        yield Finding(
            "dentry-pressure", "warning", "vm.vfs_cache_pressure",
            "0: the kernel never reclaims dentries and inodes, which can end in out-of-memory",
            "/proc/sys/vm/vfs_cache_pressure", "sysctl vm.vfs_cache_pressure=100",
        )  # fmt: skip


def _dropped(usage: Usage) -> Iterator[Finding]:
    if usage.drop_slab_count:
        times = "once" if usage.drop_slab_count == 1 else f"{whole(usage.drop_slab_count)} times"
        yield Finding(
            "dentry-dropped", "note", "host",
            f"dentries and inodes were dropped {times} since boot",
            "/proc/vmstat: drop_slab", "grep -rs drop_caches /etc/cron* /etc/systemd /var/spool/cron",
        )  # fmt: skip


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
    if largest and largest.reclaim_command and (largest.own_bytes or 0) >= _RECLAIM_FROM_BYTES:
        found.append(f"reclaim from one cgroup: {largest.reclaim_command}")
    if usage.deletes == 0 and mostly(usage.negative, usage.dentries):
        found.append("let deleted files leave no negative entry: sysctl fs.dentry-negative=1")
    found.append("drop all that is unused, host-wide: opskit dentry --drop")
    return found
