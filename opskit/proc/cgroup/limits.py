"""What a process's cgroups allow it: memory and CPU, v1 and v2 (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst).

memory.max             max                 memory.limit_in_bytes   9223372036854771712 (none)
cpu.max                200000 100000       cpu.cfs_quota_us        -1 (none)
cpu.stat               nr_periods 3600     nr_throttled 1224       throttled_usec 61200000 (v1: throttled_time, in ns)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opskit.quantities import integer

if TYPE_CHECKING:
    from opskit.proc.cgroup.tree import Level
    from opskit.proc.fs import ProcFS

_V1_NO_LIMIT = 1 << 60  # the kernel writes LONG_MAX rounded down to its page size


class MemoryLimit(NamedTuple):
    """The tightest memory limit above a process, and the cgroup that has it. `limit_bytes` None: there is no limit.

    `usage_bytes` is what all of that cgroup uses, its page cache included.
    """

    path: str
    limit_bytes: int | None
    usage_bytes: int | None


class CpuLimit(NamedTuple):
    """The tightest CPU quota above a process, and the cgroup that has it. `cpus` None: there is no quota.

    `periods`, of which `throttled_periods` were cut short, for `throttled_s` seconds; since that cgroup was made.
    """

    path: str
    cpus: float | None
    periods: int | None = None
    throttled_periods: int | None = None
    throttled_s: float | None = None


def memory_limit(fs: ProcFS, levels: tuple[Level, ...]) -> MemoryLimit:
    """Of the cgroups from a process's own up, what the tightest memory limit is."""
    tightest: tuple[int, Level] | None = None
    for level in levels:
        limit = level.number(fs, "memory.limit_in_bytes" if level.version == 1 else "memory.max")
        if limit is not None and 0 <= limit < _V1_NO_LIMIT and (tightest is None or limit < tightest[0]):
            tightest = limit, level
    if tightest is None:
        return MemoryLimit(levels[0].path, None, None)
    limit, level = tightest
    usage = level.number(fs, "memory.usage_in_bytes" if level.version == 1 else "memory.current")
    return MemoryLimit(level.path, limit, usage)


def cpu_limit(fs: ProcFS, levels: tuple[Level, ...]) -> CpuLimit:
    """Of the cgroups from a process's own up, what the tightest CPU quota is, and how often it was felt."""
    tightest: tuple[float, Level] | None = None
    for level in levels:
        cpus = _quota(fs, level)
        if cpus is not None and (tightest is None or cpus < tightest[0]):
            tightest = cpus, level
    if tightest is None:
        return CpuLimit(levels[0].path, None)
    cpus, level = tightest
    felt = level.table(fs, "cpu.stat")
    if level.version == 1:
        throttled = felt.get("throttled_time")
        throttled_s = None if throttled is None else throttled / 1e9
    else:
        throttled = felt.get("throttled_usec")
        throttled_s = None if throttled is None else throttled / 1e6
    return CpuLimit(level.path, cpus, felt.get("nr_periods"), felt.get("nr_throttled"), throttled_s)


def _quota(fs: ProcFS, level: Level) -> float | None:
    if level.version == 1:
        quota, period = level.number(fs, "cpu.cfs_quota_us"), level.number(fs, "cpu.cfs_period_us")
    else:
        words = (level.load(fs, "cpu.max") or "").split()
        quota, period = map(integer, words) if len(words) == 2 else (None, None)
    return quota / period if quota is not None and quota > 0 and period else None


def frozen_by(fs: ProcFS, levels: tuple[Level, ...]) -> str | None:
    """The path of the cgroup that is frozen (a paused container), of a process's in v2 or in v1's `freezer`; None: it runs."""
    for level in levels:
        if level.version == 1:
            frozen = level.load(fs, "freezer.state") == "FROZEN"
        else:
            frozen = bool(level.table(fs, "cgroup.events").get("frozen"))
        if frozen:
            return level.path
    return None
