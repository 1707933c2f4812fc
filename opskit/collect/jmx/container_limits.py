"""What a JVM takes for its machine: the limits of its cgroups, as far as its release minds them.

It takes those of its own cgroup, and of v1's memory that of those above where its own has none. Releases differ in whether they take
the others of those above, in what they make of CPU shares, and in how CPU loads count a container.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.cgroup.limits import cpu_limit, memory_limit, memory_limit_of, quota_cpus
from opskit.proc.cgroup.memory import memory_groups
from opskit.proc.cgroup.tree import visible_levels
from opskit.proc.files.cpu_times import parse_cpu_list
from opskit.proc.files.loadavg import parse_cpu_count
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.collect.jmx.sources import Sources
    from opskit.proc.cgroup.tree import Level
    from opskit.proc.fs import ProcFS

FIRST_CONTAINER_AWARE = 14
_AWARE_UPDATES = {8: 272, 11: 9}  # the updates that gained it
_SHARES = {1: ("cpu.shares", 1024), 2: ("cpu.weight", 100)}  # the file, and what it has by default
_CPUS = {1: ("cpuset.effective_cpus", "cpuset.cpus"), 2: ("cpuset.cpus.effective",)}


class Limits(NamedTuple):
    """Bytes of memory and swap, limited and free; CPUs. None: no limit.

    `share`: of the CPUs, that it has less of than the machine. `is_unsure_of_cpus`, `is_unsure_of_memory`: releases differ.
    """

    memory: int | None = None
    free_memory: int | None = None
    swap: int | None = None
    free_swap: int | None = None
    cpus: float | None = None
    share: str | None = None
    is_unsure_of_cpus: bool = False
    is_unsure_of_memory: bool = False


def read_limits(sources: Sources) -> Limits:
    """Those of its cgroups now; none with -XX:-UseContainerSupport."""
    if sources.flags.get("UseContainerSupport") is False:
        return Limits()
    found = _cpus(sources)
    return _with_memory(sources, found) if _minds_memory(sources) else found


def _cpus(sources: Sources) -> Limits:
    fs = sources.host.fs
    levels, _ = visible_levels(fs, sources.pid, "cpu")
    sets, _ = visible_levels(fs, sources.pid, "cpuset")
    some = f"CPUs {_cpu_set(fs, sets[0])}" if sets and _is_part(fs, _cpu_set(fs, sets[0])) else None
    if not levels:
        return Limits(share=some)
    quota = cpu_limit(fs, levels).cpus
    name, usual = _SHARES[levels[0].version]
    share = levels[0].number(fs, name)
    if quota is not None:
        is_unsure = quota_cpus(fs, levels[0]) != quota or share not in (None, usual)
        return Limits(cpus=quota, share=f"a CPU quota of {quota:g}", is_unsure_of_cpus=is_unsure)
    if share not in (None, usual):
        return Limits(share=f"{name} {share}", is_unsure_of_cpus=True)
    return Limits(share=some)


def _cpu_set(fs: ProcFS, level: Level) -> str:
    return next(filter(None, (level.load(fs, name) for name in _CPUS[level.version])), "")


def _is_part(fs: ProcFS, cpus: str) -> bool:
    """Whether a list of CPUs lacks some of the machine's."""
    count, online = len(parse_cpu_list(cpus) or ()), fs.maybe(parse_cpu_count, "stat")
    return online is not None and 0 < count < online


def _with_memory(sources: Sources, found: Limits) -> Limits:
    fs = sources.host.fs
    levels, _ = visible_levels(fs, sources.pid, "memory")
    limit = memory_limit(fs, levels) if levels else None
    if limit is None or limit.limit_bytes is None:
        return found
    own, usage = memory_limit_of(fs, levels[0]), limit.usage_bytes
    if limit.path != levels[0].path:
        is_equal = own is not None and own.limit_bytes == limit.limit_bytes
        if own is None or not (is_equal or (own.limit_bytes is None and levels[0].version == 1)):
            return found._replace(is_unsure_of_memory=True)
        usage = own.usage
    free = None if usage is None else max(0, limit.limit_bytes - usage)
    group = next((each for each in memory_groups(fs, levels) if each.path == limit.path), None)
    swap = group.swap_limit_bytes if group is not None else None
    used = (group.swap_bytes or 0) if group is not None else 0
    free_swap = None if swap is None else max(0, swap - used)
    return found._replace(memory=limit.limit_bytes, free_memory=free, swap=swap, free_swap=free_swap)


def _minds_memory(sources: Sources) -> bool:
    major, release = sources.major or 0, sources.release or ""
    if major >= FIRST_CONTAINER_AWARE:
        return True
    update = release.partition("_")[2] if major == 8 else [*release.split("."), "", "", ""][2]  # 1.8.0_272, 11.0.9
    number = integer(update.partition("-")[0].partition("+")[0])
    return number is not None and number >= _AWARE_UPDATES.get(major, 1 << 30)
