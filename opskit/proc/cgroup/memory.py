"""The memory of one cgroup: its limits, what counts against them, what the kernel reclaims first, and its OOM kills.

v2: memory.max, memory.high, memory.current, memory.peak, memory.swap.*, memory.stat, memory.events, memory.oom.group
v1: memory.limit_in_bytes, memory.usage_in_bytes, memory.max_usage_in_bytes, memory.memsw.*, memory.stat (total_*), memory.oom_control

memory.stat of v2 (Documentation/admin-guide/cgroup-v2.rst), and of v1, where total_* includes the cgroups below:

    anon 125829120                         total_rss 125829120
    file 62914560                          total_cache 62914560
    shmem 10485760                         total_shmem 10485760
    inactive_file 41943040                 total_inactive_file 41943040
    slab_reclaimable 1048576               (memory.kmem.usage_in_bytes, with the slab that can be reclaimed)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.proc.files.sysctl import read_sysctl
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.proc.cgroup.tree import Level
    from opskit.proc.fs import ProcFS

V1_NO_LIMIT = 1 << 60  # the kernel writes LONG_MAX rounded down to its page size
_LIMITS = {1: ("memory.limit_in_bytes", "memory.usage_in_bytes"), 2: ("memory.max", "memory.current")}
# v2's kernel memory on kernels without `kernel` (5.18), beside slab_unreclaimable.
_KERNEL_PARTS = ("slab_unreclaimable", "kernel_stack", "pagetables", "sec_pagetables", "percpu", "vmalloc")
_HUGE_LIMIT = r"hugetlb\.([0-9]+[KMGT]B)\.(?:max|limit_in_bytes)"


class MemoryGroup(NamedTuple):
    """One memory cgroup and those below it, in bytes; None: unknown, or not counted by this kernel. `limit_bytes` None: no limit.

    `version`: 1 or 2. `cache_bytes`: page cache that the kernel reclaims before it kills. `shmem_bytes`: tmpfs, /dev/shm and memfd, which only swap
    can take away. `kernel_bytes`: slab that cannot be reclaimed, stacks, page tables, sockets; v1 counts reclaimable slab too
    (`slab_unknown`). `pinned_bytes`: what counts at the moment of a kill, usage without all that is known to be reclaimable.
    `swap_limit_bytes`: of swap alone (v1: memsw minus the limit); None: no limit. `swaps`: False where swappiness is 0.
    `oom_kills`: since the cgroup was made. `group_kill`: memory.oom.group, all its processes die.
    """

    path: str
    version: int
    limit_bytes: int | None
    high_bytes: int | None
    usage_bytes: int | None
    peak_bytes: int | None
    anon_bytes: int | None
    shmem_bytes: int | None
    cache_bytes: int | None
    kernel_bytes: int | None
    pinned_bytes: int | None
    swap_bytes: int | None
    swap_limit_bytes: int | None
    oom_kills: int | None
    group_kill: bool = False
    kills_disabled: bool = False  # v1's oom_kill_disable: processes stop instead
    swaps: bool = True
    slab_unknown: bool = False

    @property
    def left_bytes(self) -> int | None:
        """What is left below the limit for memory that cannot be reclaimed, without swap; None: no limit, or unknown."""
        return _below(self.limit_bytes, self.pinned_bytes)

    @property
    def high_left_bytes(self) -> int | None:
        """The same below memory.high, above which its processes are slowed down until they make no progress."""
        return _below(self.high_bytes, self.pinned_bytes)

    def swap_left_bytes(self, free_bytes: int) -> int:
        """How much of it may still move to swap, of which the machine has `free_bytes`."""
        if not self.swaps:
            return 0
        own = _below(self.swap_limit_bytes, self.swap_bytes or 0)
        return free_bytes if own is None else min(own, free_bytes)


class HugeLimit(NamedTuple):
    """The reserved huge pages of one size (`2MB`) in a cgroup; a process that exceeds `limit_bytes` gets SIGBUS or ENOMEM. None: no limit."""

    path: str
    page_size: str
    limit_bytes: int | None
    usage_bytes: int | None


def _below(limit: int | None, used: int | None) -> int | None:
    return None if limit is None or used is None else max(0, limit - used)


def memory_groups(fs: ProcFS, levels: Iterable[Level]) -> tuple[MemoryGroup, ...]:
    """The memory of each of these cgroups that has the controller: v2's root has none."""
    return tuple(found for level in levels if (found := _group(fs, level)) is not None)


def memory_limit_files(version: int) -> tuple[str, str]:
    """The files of the limit and of the use."""
    return _LIMITS[version]


def read_limit(fs: ProcFS, level: Level, name: str) -> int | None:
    """A limit in bytes or pages; None: no limit, or it cannot be read."""
    number = integer(level.load(fs, name) or "")
    return None if number is None or number >= V1_NO_LIMIT else number


def reclaimable_bytes(version: int, stat: Mapping[str, int]) -> int:
    """Page cache and slab that the kernel reclaims before it refuses or kills: of what memory.stat counts."""
    return _cache_bytes(version, stat) + stat.get("slab_reclaimable", 0)


def pinned_bytes(usage: int | None, version: int, stat: Mapping[str, int]) -> int | None:
    """What counts at the moment of a kill: the use without what can be reclaimed; None: unknown."""
    return None if usage is None or not stat else max(0, usage - reclaimable_bytes(version, stat))


def _cache_bytes(version: int, stat: Mapping[str, int]) -> int:
    # Without unevictable page cache (mlock), which stays.
    prefix = "total_" if version == 1 else ""
    return stat.get(f"{prefix}inactive_file", 0) + stat.get(f"{prefix}active_file", 0)


def _group(fs: ProcFS, level: Level) -> MemoryGroup | None:
    limit_file, usage_file = _LIMITS[level.version]
    usage = level.number(fs, usage_file)
    if usage is None and not level.has(fs, limit_file):
        return None
    stat = level.table(fs, "memory.stat")
    pinned = pinned_bytes(usage, level.version, stat)
    numbers = (read_limit(fs, level, limit_file), usage, pinned)
    return (_v1 if level.version == 1 else _v2)(fs, level, stat, *numbers)


def _v2(
    fs: ProcFS, level: Level, stat: Mapping[str, int], limit: int | None, usage: int | None, pinned: int | None
) -> MemoryGroup:
    return MemoryGroup(
        level.path, 2, limit, read_limit(fs, level, "memory.high"), usage, level.number(fs, "memory.peak"),
        stat.get("anon"), stat.get("shmem"), _cache_bytes(2, stat) if stat else None, _kernel_bytes(stat), pinned,
        level.number(fs, "memory.swap.current"), read_limit(fs, level, "memory.swap.max"),
        level.table(fs, "memory.events").get("oom_kill"),
        group_kill=level.load(fs, "memory.oom.group") == "1",
        swaps=read_sysctl(fs, "vm", "swappiness") != 0,
    )  # fmt: skip


def _kernel_bytes(stat: Mapping[str, int]) -> int | None:
    if "kernel" in stat:
        return max(0, stat["kernel"] - stat.get("slab_reclaimable", 0)) + stat.get("sock", 0)
    parts = [stat[key] for key in (*_KERNEL_PARTS, "sock") if key in stat]
    return sum(parts) if parts else None


def _v1(
    fs: ProcFS, level: Level, stat: Mapping[str, int], limit: int | None, usage: int | None, pinned: int | None
) -> MemoryGroup:
    both, control = read_limit(fs, level, "memory.memsw.limit_in_bytes"), level.table(fs, "memory.oom_control")
    kernel = level.number(fs, "memory.kmem.usage_in_bytes")
    return MemoryGroup(
        level.path, 1, limit, None, usage, level.number(fs, "memory.max_usage_in_bytes"),
        stat.get("total_rss"), stat.get("total_shmem"), _cache_bytes(1, stat) if stat else None, kernel, pinned,
        stat.get("total_swap"), None if both is None or limit is None else max(0, both - limit),
        control.get("oom_kill"),
        kills_disabled=control.get("oom_kill_disable") == 1,
        swaps=level.load(fs, "memory.swappiness") != "0",
        slab_unknown=bool(kernel) and "slab_reclaimable" not in stat,
    )  # fmt: skip


def tightest(groups: Iterable[MemoryGroup], swap_free_bytes: int = 0) -> MemoryGroup | None:
    """The cgroup in which the least is left before the kernel kills; None: none has a limit, or their use is unknown."""
    limited = [group for group in groups if group.left_bytes is not None]
    return min(limited, key=lambda each: (each.left_bytes or 0) + each.swap_left_bytes(swap_free_bytes), default=None)


def swap_within(groups: Sequence[MemoryGroup], free_bytes: int) -> int:
    """How much of the machine's free swap a process of these cgroups may take, its own first: v2's limits hold at each level.

    memory.swap.max of a container is below memory.max of its pod; v1's memsw limits both at once, and only its own level.
    """
    if groups and not groups[0].swaps:
        return 0
    return min((group.swap_left_bytes(free_bytes) for group in groups if group.version == 2), default=free_bytes)


def huge_limits(fs: ProcFS, levels: Iterable[Level]) -> tuple[HugeLimit, ...]:
    """The limits and the use of reserved huge pages, of cgroups that have the hugetlb controller and use it or limit it."""
    found = []
    for level in levels:
        for name in fs.names_root(level.directory.lstrip("/")):
            if match := re.fullmatch(_HUGE_LIMIT, name):
                base = f"hugetlb.{match[1]}"
                usage = level.number(fs, f"{base}.{'usage_in_bytes' if level.version == 1 else 'current'}")
                found.append(HugeLimit(level.path, match[1], read_limit(fs, level, name), usage))
    return tuple(each for each in found if each.limit_bytes is not None or each.usage_bytes)
