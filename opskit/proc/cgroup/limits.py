"""Limits and use of a process's cgroups, and throttling by CPU quotas (Documentation/admin-guide/cgroup-v2.rst).

pids.max, memory.max   512, max            memory.limit_in_bytes   9223372036854771712 (v1: none)
cpu.max                200000 100000       cpu.cfs_quota_us        -1 (v1: none)
cpu.stat               nr_periods 3600     nr_throttled 1224       throttled_usec 61200000 (v1: throttled_time, in ns)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from opskit.proc.cgroup.memory import V1_NO_LIMIT, memory_limit_files, pinned_bytes, reclaimable_bytes
from opskit.proc.cgroup.tree import ancestry, visible_levels
from opskit.proc.files.limits import UNLIMITED
from opskit.proc.fs import optional
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.proc.cgroup.tree import Level
    from opskit.proc.fs import ProcFS

N = TypeVar("N", int, float)


class CgroupLimit(NamedTuple):
    """One cgroup's limit and use, in tasks or bytes. `limit` is UNLIMITED for none; None where it cannot be read.

    `file` holds the limit. `reclaimable_bytes` is page cache and slab that the kernel reclaims before it refuses anything.
    """

    path: str
    file: str
    limit: float | None
    usage: int | None
    reclaimable_bytes: int = 0

    @property
    def limit_bytes(self) -> int | None:
        """A memory limit as a number; None for no limit, or an unknown one."""
        return None if self.limit in (None, UNLIMITED) else round(self.limit or 0)


class CgroupLimits(NamedTuple):
    """The cgroups from the process's own up, without the machine's root; `unknown`: why some or all cannot be read."""

    levels: tuple[CgroupLimit, ...]
    unknown: str | None


class MemoryLimit(NamedTuple):
    """The tightest memory limit above a process (None: no limit), its cgroup, and all that this uses; pinned: without what is reclaimable."""

    path: str
    limit_bytes: int | None
    usage_bytes: int | None
    pinned_bytes: int | None = None


class Throttling(NamedTuple):
    """How often a CPU quota ran out since the cgroup was made: of `periods`, and for how long. None: not counted."""

    periods: int | None = None
    throttled_periods: int | None = None
    throttled_s: float | None = None


class CpuLimit(NamedTuple):
    """The tightest CPU quota above a process, and the cgroup that has it, with its Throttling. `cpus` None: no quota.

    `directory`: of its files, of this `version`; `period_us`: of v1.
    """

    path: str
    cpus: float | None
    periods: int | None = None
    throttled_periods: int | None = None
    throttled_s: float | None = None
    directory: str | None = None
    version: int = 2
    period_us: int | None = None


def pids_limit(fs: ProcFS, level: Level) -> CgroupLimit | None:
    """A cgroup's limit of tasks; None where it has none: the root, or a v2 cgroup without the controller."""
    return _limit(fs, level, "pids.max", "pids.current")


def memory_limit_of(fs: ProcFS, level: Level) -> CgroupLimit | None:
    """A cgroup's memory limit, without `reclaimable_bytes`; None where it has no such file."""
    return _limit(fs, level, *memory_limit_files(level.version))


def _memory_limit_with_cache(fs: ProcFS, level: Level) -> CgroupLimit | None:
    found = memory_limit_of(fs, level)
    if found is None or found.limit_bytes is None:
        return found
    return found._replace(reclaimable_bytes=reclaimable_bytes(level.version, level.table(fs, "memory.stat")))


def _limit(fs: ProcFS, level: Level, name: str, usage: str) -> CgroupLimit | None:
    text = level.load(fs, name)
    if text is None:
        return None
    number: float | None = UNLIMITED if text == "max" else integer(text)
    if number is not None and number >= V1_NO_LIMIT:
        number = UNLIMITED
    return CgroupLimit(level.path, f"{level.directory}/{name}", number, level.number(fs, usage))


def cgroup_limits(fs: ProcFS, pid: int, controller: str) -> CgroupLimits:
    """The limits of `pids` or `memory` above a process."""
    limit_of = {"pids": pids_limit, "memory": _memory_limit_with_cache}[controller]
    levels, unknown = visible_levels(fs, pid, controller)
    return CgroupLimits(tuple(limit for level in levels if (limit := limit_of(fs, level))), unknown)


def memory_limit(fs: ProcFS, levels: tuple[Level, ...]) -> MemoryLimit:
    """The tightest memory limit of a process's cgroup and those above it."""
    limits = ((level, memory_limit_of(fs, level)) for level in levels)
    known = [(level, found) for level, found in limits if found is not None and found.limit_bytes is not None]
    if not known:
        return MemoryLimit(levels[0].path, None, None)
    level, found = min(known, key=lambda each: each[1].limit_bytes or 0)
    pinned = pinned_bytes(found.usage, level.version, level.table(fs, "memory.stat"))
    return MemoryLimit(level.path, found.limit_bytes, found.usage, pinned)


def cpu_limit(fs: ProcFS, levels: tuple[Level, ...]) -> CpuLimit:
    """The tightest CPU quota of a process's cgroup and those above it, and how often it was used up."""
    quotas = [(cpus, level) for level in levels if (cpus := quota_cpus(fs, level)) is not None]
    if not quotas:
        return CpuLimit(levels[0].path, None)
    cpus, level = min(quotas, key=lambda quota: quota[0])
    return _cpu_limit(fs, level, cpus, throttling(fs, level))


def _cpu_limit(fs: ProcFS, level: Level, cpus: float | None, counted: Throttling) -> CpuLimit:
    period_us = level.number(fs, "cpu.cfs_period_us") if level.version == 1 and cpus is not None else None
    return CpuLimit(level.path, cpus, *counted, level.directory, level.version, period_us)


def quota_cpus(fs: ProcFS, level: Level) -> float | None:
    """How many CPUs one cgroup may use in each period; None: no quota."""
    if level.version == 1:
        quota = level.number(fs, "cpu.cfs_quota_us")
        period = level.number(fs, "cpu.cfs_period_us") if quota is not None and quota > 0 else None
    else:
        words = (level.load(fs, "cpu.max") or "").split()
        quota, period = map(integer, words) if len(words) == 2 else (None, None)
    return quota / period if quota is not None and quota > 0 and period else None


def throttling(fs: ProcFS, level: Level) -> Throttling:
    """What one cgroup's cpu.stat counts."""
    stat = level.table(fs, "cpu.stat")
    key, per_s = ("throttled_usec", 1e6) if "throttled_usec" in stat else ("throttled_time", 1e9)  # v2, v1
    seconds = stat[key] / per_s if key in stat else None
    return Throttling(stat.get("nr_periods"), stat.get("nr_throttled"), seconds)


def cpu_limits(fs: ProcFS, levels: tuple[Level, ...]) -> tuple[CpuLimit, ...]:
    """Of a process's cgroup and those above it that count periods: the quota, and what cpu.stat counts."""
    counted = ((level, throttling(fs, level)) for level in levels)
    return tuple(
        _cpu_limit(fs, each, quota_cpus(fs, each), found) for each, found in counted if found.periods is not None
    )


def cpu_limits_of(fs: ProcFS, pid: int) -> tuple[CpuLimit, ...] | None:
    """The same of a process; None where no cgroup is visible."""
    cgroups = optional(ancestry, fs, pid, "cpu")
    return None if cgroups is None else cpu_limits(fs, cgroups.levels)


def limits_since(before: Sequence[CpuLimit], after: Sequence[CpuLimit]) -> tuple[CpuLimit, ...]:
    """Those that were there before, with the periods since; None where a counter ran backwards."""
    first = {limit.path: limit for limit in before}
    return tuple(_since(first[limit.path], limit) for limit in after if limit.path in first)


def _since(before: CpuLimit, after: CpuLimit) -> CpuLimit:
    return after._replace(
        periods=_gain(before.periods, after.periods),
        throttled_periods=_gain(before.throttled_periods, after.throttled_periods),
        throttled_s=_gain(before.throttled_s, after.throttled_s),
    )


def _gain(before: N | None, after: N | None) -> N | None:
    return None if before is None or after is None or after < before else after - before


def frozen_by(fs: ProcFS, levels: tuple[Level, ...]) -> str | None:
    """The path of the frozen cgroup above a process (a paused container), v2 or v1's `freezer`; None: none is frozen."""
    for level in levels:
        if level.version == 1:
            frozen = level.load(fs, "freezer.state") == "FROZEN"
        else:
            frozen = bool(level.table(fs, "cgroup.events").get("frozen"))
        if frozen:
            return level.path
    return None


def oom_kills(fs: ProcFS, levels: tuple[Level, ...]) -> dict[str, int]:
    """By path, how many processes the OOM killer has killed in each cgroup since it was made, in v2 with those below it."""
    names = {1: "memory.oom_control", 2: "memory.events"}
    counted = ((level, level.table(fs, names[level.version]).get("oom_kill")) for level in levels)
    return {level.path: count for level, count in counted if count is not None}
