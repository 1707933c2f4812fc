"""java.lang:type=OperatingSystem, by the same files that the JVM reads for it, and by its cgroups as far as its release minds them.

CPU loads are of the time between two looks, as they are of that between two calls in JMX.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from opskit.collect.jmx.container_limits import FIRST_CONTAINER_AWARE, read_limits
from opskit.collect.jmx.made import PROC, bean
from opskit.proc.files.cpu_times import parse_cpu_list, parse_cpu_times
from opskit.proc.files.limits import UNLIMITED, parse_limits
from opskit.proc.files.loadavg import parse_cpu_count, parse_loadavg
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import optional
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.collect.jmx.container_limits import Limits
    from opskit.collect.jmx.facts import Bean, Value
    from opskit.collect.jmx.sources import Sources

_NS_PER_S = 1_000_000_000
_NO_LIMIT = (1 << 63) - 1  # what the JVM says of RLIM_INFINITY
_INITIAL = "_ZN2os31_initial_active_processor_countE"
SYSTEM_VARIABLES = (_INITIAL,)
_ARCHITECTURES = {"x86_64": "amd64"}
_CONTAINER = "java.lang:type=OperatingSystem"
_ELSE = "--agent reads them"


class CpuTicks(NamedTuple):
    """Clock ticks since the start: of the process, of work on all CPUs, of all CPUs."""

    process: int
    used: int
    total: int


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
    limits = read_limits(sources)
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
    if limits.is_unsure_of_memory:
        why = "JDK releases differ in whether they take the limits of cgroups above its own"
        sources.missing.append(f"{_CONTAINER} TotalMemorySize, FreeMemorySize, …SwapSpaceSize: {why}; {_ELSE}")
        return {}
    found: dict[str, Value] = {
        "TotalPhysicalMemorySize": total, "FreePhysicalMemorySize": free,
        "TotalSwapSpaceSize": swap, "FreeSwapSpaceSize": free_swap,
    }  # fmt: skip
    if (sources.major or 0) >= FIRST_CONTAINER_AWARE:
        found.update({"TotalMemorySize": total, "FreeMemorySize": free})
    return found


def _loads(sources: Sources, limits: Limits, before: CpuTicks | None, now: CpuTicks | None) -> dict[str, Value]:
    if before is None or now is None or now.total <= before.total:
        return {}
    if limits.share is not None:  # many releases tell the loads of the container then
        why = f"the JVM may tell those of its container, which has {limits.share}"
        sources.missing.append(f"{_CONTAINER} ProcessCpuLoad, CpuLoad: {why}; {_ELSE}")
        return {}
    span = now.total - before.total
    found: dict[str, Value] = {"ProcessCpuLoad": min(1.0, max(0, now.process - before.process) / span)}
    load = min(1.0, max(0, now.used - before.used) / span)
    found["SystemCpuLoad"] = load
    if (sources.major or 0) >= FIRST_CONTAINER_AWARE:
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
    if count is not None and limits.cpus is not None:
        count = max(1, min(count, math.ceil(limits.cpus)))
    if count is None or not limits.is_unsure_of_cpus or count == sources.variable(_INITIAL, 4):
        return count
    why = f"JDK releases differ in what they make of {limits.share}"
    sources.missing.append(f"{_CONTAINER} AvailableProcessors: {why}; --agent reads it")
    return None
