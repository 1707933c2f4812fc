"""Measure what the threads of a JVM use of the CPUs during a run, and how long they wait for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.jvm.perfdata.counters import collector, gc_work, heap
from opskit.jvm.perfdata.stop_clock import CounterReader
from opskit.proc.cgroup.limits import cpu_limits_of, limits_since
from opskit.proc.files.cpu_times import parse_cpu_list, parse_cpu_times
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.thread_cpu import ThreadCpu
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.host import Host
    from opskit.jvm.perfdata.counters import Heap
    from opskit.jvm.perfdata.hsperfdata import PerfData
    from opskit.proc.cgroup.limits import CpuLimit
    from opskit.proc.files.cpu_times import CpuTime
    from opskit.proc.files.stat import ProcStat
    from opskit.proc.thread_cpu import ThreadTimes

_BUSY_SHARE = 0.005  # of the CPU time: only these threads are asked for their names


class Load(NamedTuple):
    """What a JVM's threads did in `elapsed_s`, by native id: ms on a CPU and ms waiting for one; the names of busy ones.

    `used_s`: the whole process, with threads that ended. `pauses`, `pause_s`: of the collector. `cpus`: those that it may
    use; `idle_share`: how much of them nobody used. `quotas`: of its cgroups, with the periods of the run. None: unknown.
    """

    elapsed_s: float
    used_s: float | None
    used_ms: Mapping[int, float]
    waited_ms: Mapping[int, float]
    names: Mapping[int, str]
    collector: str | None
    pauses: int | None
    pause_s: float | None
    heap: Heap | None
    cpus: int | None
    idle_share: float | None
    quotas: Sequence[CpuLimit] | None = None

    @property
    def throttled_percent(self) -> float | None:
        """The share of the scheduler periods in which a quota ran out, of the most throttled cgroup; 0 without a quota."""
        if self.quotas is None:
            return None
        shares = (100 * (each.throttled_periods or 0) / each.periods for each in self.quotas if each.periods)
        return max((0.0, *shares))


class _Moment(NamedTuple):
    at_s: float
    stat: ProcStat | None
    threads: ThreadTimes
    perf: PerfData | None
    quotas: Sequence[CpuLimit] | None
    cpus: Mapping[int, CpuTime]


class LoadMeter:
    """Reads everything when it is made, and again for `measure`. `before` and `after`: the CPU ms of each thread."""

    def __init__(self, host: Host, pid: int, perf: PerfData | None) -> None:
        self.host, self.pid = host, pid
        self._counters = CounterReader(host.fs, perf, None)
        self.threads = ThreadCpu(host.fs, pid, host.clock_ticks)
        self._first = self._last = self._read()

    @property
    def before(self) -> Mapping[int, float]:
        """CPU ms of each thread at the begin."""
        return self._first.threads.used_ms

    @property
    def after(self) -> Mapping[int, float]:
        """CPU ms of each thread at the last `measure`."""
        return self._last.threads.used_ms

    def measure(self) -> Load:
        """What happened since the begin."""
        first, last = self._first, self._read()
        self._last = last
        used = _gains(first.threads.used_ms, last.threads.used_ms)
        busy_ms = _BUSY_SHARE * sum(used.values())
        pauses, pause_s = _collections(first.perf, last.perf)
        cpus = _since(first.cpus, last.cpus, self._allowed())
        return Load(
            last.at_s - first.at_s,
            _used_s(first.stat, last.stat, self.host.clock_ticks),
            used,
            _gains(first.threads.waited_ms, last.threads.waited_ms),
            self.threads.names(tid for tid, ms in used.items() if ms > busy_ms),
            last.perf and collector(last.perf),
            pauses,
            pause_s,
            last.perf and heap(last.perf),
            len(cpus) or None,
            _idle_share(cpus),
            None if first.quotas is None or last.quotas is None else limits_since(first.quotas, last.quotas),
        )

    def _read(self) -> _Moment:
        fs, pid = self.host.fs, self.pid
        return _Moment(
            self.host.monotonic(),
            fs.maybe(parse_stat, pid, "stat"),
            self.threads.read(),
            self._counters.read(),
            cpu_limits_of(fs, pid),
            fs.maybe(parse_cpu_times, "stat", default={}),
        )

    def _allowed(self) -> frozenset[int] | None:
        status = self.host.fs.maybe(parse_status, self.pid, "status")
        return None if status is None else parse_cpu_list(status.fields.get("Cpus_allowed_list", ""))


def _gains(before: Mapping[int, float], after: Mapping[int, float]) -> dict[int, float]:
    """By how much each number grew; one that fell belongs to another thread, whose id was used again."""
    return {key: now - before.get(key, 0.0) for key, now in after.items() if now >= before.get(key, 0.0)}


def _used_s(before: ProcStat | None, after: ProcStat | None, clock_ticks: int) -> float | None:
    if before is None or after is None:
        return None
    return (after.user_ticks + after.system_ticks - before.user_ticks - before.system_ticks) / clock_ticks


def _collections(before: PerfData | None, after: PerfData | None) -> tuple[int | None, float | None]:
    """GC pauses between two readings, and the seconds in them."""
    if before is None or after is None:
        return None, None
    then, now = gc_work(before), gc_work(after)
    if then.pauses is None or then.pause_s is None or now.pauses is None or now.pause_s is None:
        return None, None
    return now.pauses - then.pauses, now.pause_s - then.pause_s


def _since(
    before: Mapping[int, CpuTime], after: Mapping[int, CpuTime], allowed: frozenset[int] | None
) -> list[CpuTime]:
    """What each CPU that may be used did between two readings."""
    return [
        now.since(before[number])
        for number, now in after.items()
        if number in before and (allowed is None or number in allowed)
    ]


def _idle_share(cpus: list[CpuTime]) -> float | None:
    """The share of the time in which the CPUs had nothing to run."""
    total = sum(cpu.total_ticks for cpu in cpus)
    return sum(cpu.idle_ticks for cpu in cpus) / total if total else None
