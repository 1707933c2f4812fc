"""The memory of one cgroup: its limits, what counts against them, what the kernel reclaims first, and its OOM kills.

v2: memory.max, memory.high, memory.current, memory.peak, memory.swap.*, memory.stat, memory.events
v1: memory.limit_in_bytes, memory.usage_in_bytes, memory.max_usage_in_bytes, memory.memsw.*, memory.stat (total_*), memory.oom_control
"""

from __future__ import annotations

from opskit.records import NamedTuple


class MemoryGroup(NamedTuple):
    """One memory cgroup and those below it, in bytes; None: unknown, or not counted by this kernel. `limit_bytes` None: no limit.

    `version`: 1 or 2. `cache_bytes`: page cache that the kernel reclaims before it kills. `shmem_bytes`: tmpfs, /dev/shm and memfd, which only swap
    can take away. `kernel_bytes`: slab that cannot be reclaimed, stacks, page tables, sockets. `pinned_bytes`: what counts at the moment of a kill,
    usage without all that can be reclaimed. `oom_kills`: since the cgroup was made. `group_kill`: memory.oom.group, all its processes die.
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
