"""The counters of a machine and of its JVMs at one moment: what rates and shares are made of."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Optional

from opskit.jvm.perfdata.counters import HEAP_COUNTERS, gc_work
from opskit.jvm.perfdata.stop_clock import STOP_COUNTERS, CounterReader, stopped_s
from opskit.proc.cgroup.limits import cpu_limit, memory_limit
from opskit.proc.cgroup.tree import ancestry
from opskit.proc.files.boot_time import age_s, parse_uptime
from opskit.proc.files.cpu_times import CpuTime, parse_cpu_times, parse_switches
from opskit.proc.files.diskstats import parse_diskstats
from opskit.proc.files.io import parse_io
from opskit.proc.files.limits import UNLIMITED, parse_soft_limits
from opskit.proc.files.loadavg import parse_loadavg
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.files.pressure import parse_pressures
from opskit.proc.files.schedstat import parse_schedstat
from opskit.proc.files.snmp import parse_counters
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.files.vmstat import parse_vmstat
from opskit.proc.fs import optional
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.host import Host
    from opskit.jvm.discover import Jvm
    from opskit.proc.cgroup.limits import CpuLimit
    from opskit.proc.files.diskstats import DiskStat
    from opskit.proc.files.io import ProcIo

_EVENTS = ("pswpin", "pswpout", "pgmajfault", "compact_stall", "thp_fault_fallback")
_NET = {
    "snmp": ("Tcp.OutSegs", "Tcp.RetransSegs", "Tcp.InErrs", "Udp.RcvbufErrors"),
    "netstat": ("TcpExt.ListenOverflows", "TcpExt.TCPTimeouts"),
}  # fmt: skip
_PRESSURES = ("cpu", "memory", "io")
_MOST_THREADS = 4000
_NAMES = (b"sun.rt.safepoints", b"sun.gc.policy.name", b"sun.gc.generation.1.name")
_WANTED = STOP_COUNTERS | frozenset(_NAMES) | frozenset(name.encode() for name in HEAP_COUNTERS)


class MachineCounters(NamedTuple):
    """Since boot; `load` and `memory` are of this moment."""

    at_s: float
    cpus: Mapping[int, CpuTime]
    switches: Optional[int]  # noqa: UP045
    events: Mapping[str, int]
    net: Mapping[str, int]
    pressure: Mapping[str, int]  # microseconds of `some`, by cpu, memory, io
    disks: Mapping[str, DiskStat]
    load: Optional[float]  # noqa: UP045
    memory: Mapping[str, int]


class JvmCounters(NamedTuple):
    """Since the JVM's start, or its cgroup's. Times in seconds; None: unknown."""

    at_s: float
    age_s: Optional[float]  # noqa: UP045
    cpu_s: float
    threads: int
    major_faults: int
    rss_bytes: Optional[int]  # noqa: UP045
    swap_bytes: Optional[int]  # noqa: UP045
    waited_s: Optional[float]  # noqa: UP045
    ran_s: Optional[float]  # noqa: UP045
    pauses: Optional[int]  # noqa: UP045
    pause_s: Optional[float]  # noqa: UP045
    safepoints: Optional[int]  # noqa: UP045
    stopped_s: Optional[float]  # noqa: UP045
    cpu: Optional[CpuLimit]  # noqa: UP045
    memory_share: Optional[float]  # noqa: UP045
    fds_share: Optional[float]  # noqa: UP045
    io: Optional[ProcIo]  # noqa: UP045
    pressure: Mapping[str, int] = {}


def machine_counters(host: Host) -> MachineCounters:
    """Read them all now."""
    fs = host.fs
    place: tuple[object, ...] = ("thread-self", "net") if host.is_own else (1, "net") if fs.is_live else ("net",)
    vmstat = fs.maybe(parse_vmstat, "vmstat", default={})
    events = {name: vmstat[name] for name in _EVENTS if name in vmstat}
    stalls = [number for name, number in vmstat.items() if name.startswith("allocstall")]
    net: dict[str, int] = {}
    for file, wanted in _NET.items():
        net.update(fs.maybe(partial(parse_counters, wanted=wanted), *place, file, default={}))
    load = fs.maybe(parse_loadavg, "loadavg")
    totals = {name: fs.maybe(parse_pressures, "pressure", name, default={}).get("some") for name in _PRESSURES}
    return MachineCounters(
        host.monotonic(), fs.maybe(parse_cpu_times, "stat", default={}), fs.maybe(parse_switches, "stat"),
        {**events, **({"allocstall": sum(stalls)} if stalls else {})}, net,
        {name: total for name, total in totals.items() if total is not None},
        fs.maybe(parse_diskstats, "diskstats", default={}), None if load is None else load.load1,
        fs.maybe(parse_meminfo, "meminfo", default={}),
    )  # fmt: skip


def jvm_counters(host: Host, jvm: Jvm) -> JvmCounters | None:
    """Read a JVM's now; None where it is gone or closed to us."""
    fs, pid = host.fs, jvm.pid
    stat = fs.maybe(parse_stat, pid, "stat")
    if stat is None or (jvm.start_ticks is not None and stat.start_ticks != jvm.start_ticks):
        return None
    perf = CounterReader(fs, jvm.perf, None).read() or jvm.perf
    work = gc_work(perf) if perf is not None else None
    status = fs.maybe(parse_status, pid, "status")
    waited, ran = _waits(host, pid)
    cgroups = {name: optional(ancestry, fs, pid, name) for name in ("cpu", "memory")}
    cpu, memory = cgroups["cpu"], cgroups["memory"]
    quota = cpu_limit(fs, cpu.levels) if cpu is not None else None
    limit = memory_limit(fs, memory.levels) if memory is not None else None
    pinned = None if limit is None else limit.pinned_bytes
    level = next((each.levels[0] for each in (cpu, memory) if each is not None and each.levels[0].version == 2), None)
    shares = {} if level is None else {
        name: found for name in _PRESSURES
        if (found := fs.maybe_root(parse_pressures, level.directory.lstrip("/"), f"{name}.pressure", default={}).get("some")) is not None
    }  # fmt: skip
    return JvmCounters(
        host.monotonic(), age_s(fs.maybe(parse_uptime, "uptime"), stat.start_ticks, host.clock_ticks), (stat.user_ticks + stat.system_ticks) / host.clock_ticks, stat.threads,
        stat.major_faults, status and status.bytes_of("VmRSS"), status and status.bytes_of("VmSwap"), waited, ran,
        work and work.pauses, work and work.pause_s, perf.number("sun.rt.safepoints") if perf else None,
        stopped_s(perf) if perf else None, quota,
        None if limit is None or not limit.limit_bytes or pinned is None else pinned / limit.limit_bytes,
        _fds_share(host, pid), fs.maybe(parse_io, pid, "io"), shares,
    )  # fmt: skip


def _waits(host: Host, pid: int) -> tuple[float | None, float | None]:
    """How long its threads have waited for a CPU, and run, in seconds."""
    waited = ran = 0.0
    known = False
    for tid in optional(host.fs.tids, pid, default=[])[:_MOST_THREADS]:
        times = host.fs.maybe(parse_schedstat, pid, "task", tid, "schedstat")
        if times is not None and times.wait_ms is not None:
            known, waited, ran = True, waited + times.wait_ms / 1000, ran + times.cpu_ms / 1000
    return (waited, ran) if known else (None, None)


def _fds_share(host: Host, pid: int) -> float | None:
    targets = optional(host.fs.fd_targets, pid)
    limits = host.fs.maybe(parse_soft_limits, pid, "limits")
    if targets is None or limits is None or limits.open_files in (0, UNLIMITED):
        return None
    return len(targets) / limits.open_files
