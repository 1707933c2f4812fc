"""java.lang:type=OperatingSystem, by the same files that the JVM reads for it, and by its cgroups as far as its release minds them.

CPU loads are of the time between two looks, as they are of that between two calls in JMX.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from opskit.collect.jmx.made import PROC, bean
from opskit.proc.cgroup.limits import cpu_limit, memory_limit
from opskit.proc.cgroup.memory import memory_groups
from opskit.proc.cgroup.tree import visible_levels
from opskit.proc.files.cpu_times import parse_cpu_list, parse_cpu_times
from opskit.proc.files.limits import UNLIMITED, parse_limits
from opskit.proc.files.loadavg import parse_cpu_count, parse_loadavg
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import optional
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.collect.jmx.facts import Bean, Value
    from opskit.collect.jmx.sources import Sources

_NS_PER_S = 1_000_000_000
_NO_LIMIT = (1 << 63) - 1  # what the JVM says of RLIM_INFINITY
_FIRST_WITH_CPU_LOAD, _FIRST_CONTAINER_AWARE = 14, 14
_AWARE_UPDATES = {8: 272, 11: 9}  # the updates that gained it
_ARCHITECTURES = {"x86_64": "amd64"}
_CONTAINER = "java.lang:type=OperatingSystem"


class CpuTicks(NamedTuple):
    """Clock ticks since the start: of the process, of work on all CPUs, of all CPUs."""

    process: int
    used: int
    total: int


class Limits(NamedTuple):
    """What the JVM takes for the machine: bytes of memory and swap, limited and free; CPUs. None: no limit."""

    memory: int | None = None
    free_memory: int | None = None
    swap: int | None = None
    free_swap: int | None = None
    cpus: float | None = None


def read_ticks(sources: Sources) -> CpuTicks | None:
    """The counters of CPU loads now; None: they cannot be read."""
    fs = sources.host.fs
    stat = fs.maybe(parse_stat, sources.pid, "stat")
    cpus = fs.maybe(parse_cpu_times, "stat", default={}).values()
    if stat is None or not cpus:
        return None
    used = sum(each.user + each.nice + each.system + each.irq + each.softirq for each in cpus)
    return CpuTicks(stat.user_ticks + stat.system_ticks, used, sum(each.total_ticks for each in cpus))


def system_bean(sources: Sources, properties: Mapping[str, str], before: CpuTicks | None, now: CpuTicks | None) -> Bean:
    """What is known. `before`: at the look before this one."""
    limits = _limits(sources)
    fs, host = sources.host.fs, sources.host
    load = fs.maybe(parse_loadavg, "loadavg")
    values: dict[str, Value] = {
        "Name": properties.get("os.name", "Linux"),
        "Version": properties.get("os.version") or fs.maybe(str.strip, "sys", "kernel", "osrelease"),
        "Arch": properties.get("os.arch") or _ARCHITECTURES.get(host.machine, host.machine),
        "AvailableProcessors": _processors(sources, limits),
        "SystemLoadAverage": load.load1 if load is not None else None,
        **_process(sources),
        **_memory(sources, limits),
        **_loads(sources, limits, before, now),
    }
    return bean("java.lang:type=OperatingSystem", (PROC, values))


def _process(sources: Sources) -> dict[str, Value]:
    fs, pid = sources.host.fs, sources.pid
    stat, status = fs.maybe(parse_stat, pid, "stat"), fs.maybe(parse_status, pid, "status")
    files = optional(fs.fd_count, pid)
    limit = fs.maybe(parse_limits, pid, "limits", default={}).get("RLIMIT_NOFILE")
    ticks = None if stat is None else stat.user_ticks + stat.system_ticks
    if files is None:
        sources.missing.append(f"{_CONTAINER} OpenFileDescriptorCount: {fs.path(pid, 'fd')} cannot be read")
    return {
        "OpenFileDescriptorCount": files,
        "MaxFileDescriptorCount": None
        if limit is None
        else _NO_LIMIT
        if limit.soft == UNLIMITED
        else round(limit.soft),
        "ProcessCpuTime": None if ticks is None else ticks * _NS_PER_S // sources.host.clock_ticks,
        "CommittedVirtualMemorySize": status.bytes_of("VmSize") if status is not None else None,
    }


def _memory(sources: Sources, limits: Limits) -> dict[str, Value]:
    meminfo = sources.host.fs.maybe(parse_meminfo, "meminfo", default={})
    total, free = meminfo.get("MemTotal"), meminfo.get("MemFree")
    swap, free_swap = meminfo.get("SwapTotal"), meminfo.get("SwapFree")
    if limits.memory is not None and total is not None and limits.memory < total:
        total, free = limits.memory, limits.free_memory
        if limits.swap is not None:
            swap, free_swap = limits.swap, limits.free_swap
    found: dict[str, Value] = {
        "TotalPhysicalMemorySize": total, "FreePhysicalMemorySize": free,
        "TotalSwapSpaceSize": swap, "FreeSwapSpaceSize": free_swap,
    }  # fmt: skip
    if (sources.major or 0) >= _FIRST_WITH_CPU_LOAD:
        found.update({"TotalMemorySize": total, "FreeMemorySize": free})
    return found


def _loads(sources: Sources, limits: Limits, before: CpuTicks | None, now: CpuTicks | None) -> dict[str, Value]:
    if before is None or now is None or now.total <= before.total:
        return {}
    span = now.total - before.total
    found: dict[str, Value] = {"ProcessCpuLoad": min(1.0, max(0, now.process - before.process) / span)}
    if limits.cpus is not None:  # then the JVM tells the load of its container
        sources.missing.append(
            f"{_CONTAINER} CpuLoad: of its container, whose quota is {limits.cpus:g} CPUs; --agent reads it"
        )
        return found
    load = min(1.0, max(0, now.used - before.used) / span)
    found["SystemCpuLoad"] = load
    if (sources.major or 0) >= _FIRST_WITH_CPU_LOAD:
        found["CpuLoad"] = load
    return found


def _processors(sources: Sources, limits: Limits) -> int | None:
    """As os::active_processor_count(): what the process may run on, and its quota, rounded up."""
    flag = sources.flags.get("ActiveProcessorCount")
    if isinstance(flag, int) and flag > 0:
        return flag
    status = sources.host.fs.maybe(parse_status, sources.pid, "status")
    allowed = parse_cpu_list(status.fields.get("Cpus_allowed_list", "")) if status is not None else None
    count = len(allowed) if allowed else None
    online = sources.host.fs.maybe(parse_cpu_count, "stat")
    if count is None or (online is not None and online < count):
        count = online
    if count is None or limits.cpus is None:
        return count
    return max(1, min(count, math.ceil(limits.cpus)))


def _limits(sources: Sources) -> Limits:
    """Of its cgroups, where the release minds them for this bean, and -XX:-UseContainerSupport does not turn that off."""
    if sources.flags.get("UseContainerSupport") is False:
        return Limits()
    fs, pid = sources.host.fs, sources.pid
    levels, _ = visible_levels(fs, pid, "cpu")
    cpus = cpu_limit(fs, levels).cpus if levels else None
    if not _minds_memory(sources):
        return Limits(cpus=cpus)
    levels, _ = visible_levels(fs, pid, "memory")
    limit = memory_limit(fs, levels) if levels else None
    if limit is None or limit.limit_bytes is None:
        return Limits(cpus=cpus)
    free = None if limit.usage_bytes is None else max(0, limit.limit_bytes - limit.usage_bytes)
    group = next((each for each in memory_groups(fs, levels) if each.path == limit.path), None)
    swap = group.swap_limit_bytes if group is not None else None
    used = (group.swap_bytes or 0) if group is not None else 0
    return Limits(limit.limit_bytes, free, swap, None if swap is None else max(0, swap - used), cpus)


def _minds_memory(sources: Sources) -> bool:
    major, release = sources.major or 0, sources.release or ""
    if major >= _FIRST_CONTAINER_AWARE:
        return True
    update = release.partition("_")[2] if major == 8 else [*release.split("."), "", "", ""][2]  # 1.8.0_272, 11.0.9
    number = integer(update.partition("-")[0].partition("+")[0])
    return number is not None and number >= _AWARE_UPDATES.get(major, 1 << 30)
