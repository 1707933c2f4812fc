"""The quick look of `opskit doctor`: whether anything waits for a CPU, and only then which threads.

The threads are read where the machine's PSI shows that some wait, where a CPU is in full use, or where there is no PSI. Nothing is
sampled at even times: each reading has its own time, since it may come late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.cswitch.facts import Facts, ProcessWaits
from opskit.collect.cswitch.machine import Machine, loads, pressure, switches
from opskit.collect.cswitch.sweep import Reading, Sweep
from opskit.collect.process_names import name_process
from opskit.collect.windows import uneven_moments
from opskit.proc.cgroup.limits import quota_cpus, throttling
from opskit.proc.cgroup.sweep import all_cgroups, cgroups_of
from opskit.proc.cgroup.tree import Level, is_at_or_below, visible_levels
from opskit.proc.cpu_topology import read_cpuset, read_topology
from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import DENIED, GONE, optional
from opskit.proc.namespaces import in_initial
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.collect.cswitch.facts import CpuLoad, Thread
    from opskit.collect.cswitch.machine import Moment
    from opskit.host import Host
    from opskit.proc.cgroup.limits import Throttling
    from opskit.proc.process import Process

_DECIDES = 0.25  # of the window, after which it is known whether the threads are read
_APART_S = 0.1  # looks at the run queues
_WAITS, _BUSY = 0.1, 0.75  # CPUs: for which tasks wait, and in use; less is nobody's harm
_UNSEEN = 0.75  # runnable tasks above those that moved: one may wait all the time
_NOTABLE, _NAMED = 0.02, 0.2  # of a CPU, running or waiting, of a process
_JAVA = "java"
_HAS_TIME = 0.15  # idle share of a CPU on which opskit ran by itself
_MOST_MEMBERS = 8
_LONGEST = 1024  # bytes of a schedstat, or of a stat


class CgroupQuota(NamedTuple):
    """A cgroup with a quota of `cpus` that was used up in `throttled_periods` of `periods` in the window.

    `processes`: its own and those below it, the longest waits first. `period_us`: of v1. `throttled_s`: for how long, summed
    over the CPUs; None: not counted.
    """

    path: str
    cpus: float
    periods: int
    throttled_periods: int
    directory: str
    version: int
    processes: tuple[ProcessWaits, ...] = ()
    period_us: int | None = None
    throttled_s: float | None = None


class Owned(NamedTuple):
    """What a process is part of: the path of its cgroup with the CPU controller, its session."""

    cgroup: str | None
    session: int | None


class QuickFacts(NamedTuple):
    """`facts`: of the machine; without processes where nobody waits (`is_calm`). `owned`: by PID, of its processes.

    `quotas`: those that were used up; `quota_count`: all that there are. `sleeps`: by TID, of busy threads, the share of switches since
    their start in which they went to sleep: it is 0 of what only computes. `sees_all`: not in a container, which sees its processes alone.
    """

    facts: Facts
    quotas: tuple[CgroupQuota, ...]
    quota_count: int
    owned: Mapping[int, Owned]
    sleeps: Mapping[int, float]
    is_calm: bool
    has_waits: bool = True
    sees_all: bool = True


class _QuickSweep(Sweep):
    """The threads at the end are those of the begin, and all of processes that are new: no directory is listed twice."""

    def __init__(self, host: Host) -> None:
        super().__init__(host, host.fs.pids)
        self._ours = integer(optional(host.fs.link, "self", default=b""))
        self._tids: dict[int, list[int]] = {}
        self._single: set[int] = set()
        self.seen = 0  # threads

    def _read_all(self) -> Iterator[tuple[int, Reading]]:
        fs = self._host.fs
        for pid in fs.pids():
            if pid == self._ours:
                continue
            if fs.kept is not None:
                fs.kept.before_read()
            if pid not in self._tids:
                if optional(fs.thread_count, pid) == 1:  # a stat costs half of a listing
                    self._tids[pid] = [pid]
                    self._single.add(pid)
                else:
                    self._tids[pid] = optional(fs.tids, pid, default=[])
            for tid in self._tids[pid]:
                found = self._read(pid, tid)
                if found is not None:
                    yield tid, found

    def _read(self, pid: int, tid: int) -> Reading | None:
        fs = self._host.fs
        place = pid if pid in self._single else f"{pid}/task/{tid}"  # two directories less to look up
        try:
            raw = fs.read_at(f"{fs.proc}/{place}/{self._file}", 0, _LONGEST)
        except (*GONE, DENIED):
            return None
        return Reading(pid, self._host.monotonic(), raw)

    def last(self, online: frozenset[int], runnable: float | None) -> dict[int, list[Thread]]:
        """The second readings: what each thread did. Where more tasks were runnable than moved, those too that never ran."""
        before = self._first
        swept = self.end(online, look_for_stuck=False)
        self.seen = swept.seen
        demand = sum(one.running + (one.waiting or 0.0) for moved in swept.threads.values() for one in moved)
        if runnable is not None and runnable - demand >= _UNSEEN:
            for tid, now in self._first.items():
                then = before.get(tid)
                if then is not None and then.raw == now.raw and (stuck := self._stuck(tid, now)) is not None:
                    swept.threads.setdefault(now.pid, []).append(stuck)
        return swept.threads

    def sleeps(self) -> dict[int, float]:
        """By TID, of busy threads, the share of voluntary switches since their start."""
        counts = {tid: (sched.voluntary or 0, sched.involuntary or 0) for tid, (_, sched) in self._switches.items()}
        return {
            tid: voluntary / (voluntary + forced) for tid, (voluntary, forced) in counts.items() if voluntary + forced
        }


class _Quotas:
    """The counters of all cgroups with a CPU quota at the begin of a window; `pids`: of the cgroups above these alone."""

    def __init__(self, host: Host, pids: Sequence[int]) -> None:
        self._host, fs = host, host.fs
        self._first: list[tuple[Level, float, Throttling]] = []
        for level in cgroups_of(fs, pids, "cpu") if pids else all_cgroups(fs, "cpu"):
            cpus = quota_cpus(fs, level)
            if cpus is not None:
                self._first.append((level, cpus, throttling(fs, level)))
        self.count = len(self._first)

    def end(self) -> Iterator[CgroupQuota]:
        """Those that were used up since."""
        for level, cpus, first in self._first:
            last = throttling(self._host.fs, level)
            throttled = (last.throttled_periods or 0) - (first.throttled_periods or 0)
            periods = (last.periods or 0) - (first.periods or 0)
            if throttled <= 0 or periods <= 0:
                continue
            period_us = level.number(self._host.fs, "cpu.cfs_period_us") if level.version == 1 else None
            held_s = None
            if first.throttled_s is not None and last.throttled_s is not None:
                held_s = max(0.0, last.throttled_s - first.throttled_s)
            yield CgroupQuota(
                level.path, cpus, periods, min(throttled, periods), level.directory, level.version,
                period_us=period_us, throttled_s=held_s,
            )  # fmt: skip


def look_quickly(host: Host, pids: Sequence[int], window_s: float) -> QuickFacts:
    """Look for one window. `pids`: whose cgroups are read; none: all cgroups. Raises NotSupported where the CPUs are unknown."""
    quotas, machine, topology = _Quotas(host, pids), Machine(host, None), read_topology(host.fs)
    online = frozenset(topology.online)
    first, own, begun_s = machine.read(), _own_s(host), host.monotonic()
    end_s = host.end_at(begun_s + window_s)
    decides_first = host.can_look_after(_DECIDES * window_s / 2)
    if decides_first:
        _wait(host, machine, begun_s + _DECIDES * window_s)
    is_worth_it = not decides_first or _is_worth_it(first, machine.read(), _own_s(host) - own)
    sweep = _QuickSweep(host) if is_worth_it and host.monotonic() < end_s else None
    if sweep is not None:
        sweep.begin()
    _wait(host, machine, end_s)
    last = machine.read()
    if not decides_first and not _is_worth_it(first, last, _own_s(host) - own):
        sweep = None
    passed_s = max(last.at_s - first.at_s, 1e-6)
    cpus = _without_opskit(loads(first, last), (_own_s(host) - own) / passed_s)
    used_up, runnable = [*quotas.end()], machine.take_runnable()
    threads = {} if sweep is None else sweep.last(online, runnable)
    processes = tuple(_processes(host, threads, online))
    owned = {each.process.pid: _owned(host, each.process.pid) for each in processes}
    facts = Facts(
        None, passed_s, (), processes, cpus, (), runnable, switches(first, last), pressure(first, last),
        topology.isolated, all_threads=0 if sweep is None else sweep.seen, cpuset=read_cpuset(host.fs, "self", online),
    )  # fmt: skip
    members = tuple(quota._replace(processes=_members(host, quota, processes, owned)) for quota in used_up)
    sleeps = {} if sweep is None else sweep.sleeps()
    has_waits, sees_all = sweep is None or sweep.has_waits, in_initial(host.fs, "pid") is not False
    return QuickFacts(facts, members, quotas.count, owned, sleeps, sweep is None, has_waits, sees_all)


def _wait(host: Host, machine: Machine, until_s: float) -> None:
    """Until then, with some looks at the run queues."""
    for _ in uneven_moments(host, _APART_S, until_s):
        machine.sample_runnable()


def _own_s(host: Host) -> float:
    """The CPU time of all threads of opskit."""
    stat = host.fs.maybe(parse_stat, "self", "stat")
    return 0.0 if stat is None else (stat.user_ticks + stat.system_ticks) / host.clock_ticks


def _is_worth_it(first: Moment, now: Moment, own_s: float) -> bool:
    """Whether tasks wait so far, or a CPU is used up by others than opskit, or that is unknown. PSI is an average of the CPUs."""
    cpus, waits = loads(first, now), pressure(first, now)
    if waits is None or not cpus:
        return True
    busy = sum(1 - each.use.idle for each in cpus) - own_s / max(now.at_s - first.at_s, 1e-6)
    return waits * len(cpus) >= _WAITS or busy >= _BUSY


def _without_opskit(cpus: tuple[CpuLoad, ...], own: float) -> tuple[CpuLoad, ...]:
    """The CPUs without what opskit used: that was time of the one with most idle time, if any has some."""
    idlest = max(cpus, key=lambda each: each.use.idle, default=None)
    if idlest is None or idlest.use.idle < _HAS_TIME:
        return cpus
    use = idlest.use
    own = min(own, use.user + use.system)
    whole = max(use.user + use.system, 1e-6)
    free = use._replace(
        user=use.user * (1 - own / whole), system=use.system * (1 - own / whole), idle=use.idle + own
    )  # fmt: skip
    return tuple(each._replace(use=free) if each is idlest else each for each in cpus)


def _processes(host: Host, threads: Mapping[int, Sequence[Thread]], online: frozenset[int]) -> Iterator[ProcessWaits]:
    """Those that ran or waited, the longest waits first."""
    found = []
    for pid, moved in threads.items():
        waits = [one.waiting for one in moved if one.waiting is not None]
        running, waiting = sum(one.running for one in moved), sum(waits) if waits else None
        process = host.process(pid) if running + (waiting or 0.0) >= _NOTABLE else None
        if process is None or process.start_ticks is None:
            continue
        if running + (waiting or 0.0) >= _NAMED:
            process = _named(host, process)
        worst = max(moved, key=lambda one: (one.waiting or 0.0, one.running))
        if 0 < len(worst.allowed) < len(online):
            worst = worst._replace(cpuset=read_cpuset(host.fs, pid, online))
        found.append(ProcessWaits(process, running, waiting, None, len(moved), worst))
    yield from sorted(found, key=lambda one: (-(one.waiting or 0.0), -one.running, one.process.pid))


def _named(host: Host, process: Process) -> Process:
    """A JVM by what it runs."""
    return process._replace(command=name_process(host, process.pid).name) if process.command == _JAVA else process


def _owned(host: Host, pid: int) -> Owned:
    stat = host.fs.maybe(parse_stat, pid, "stat")
    levels = visible_levels(host.fs, pid, "cpu")[0]
    path = levels[0].path if levels else None
    return Owned(None if path == "/" else path, stat and stat.session)


def _members(
    host: Host, quota: CgroupQuota, processes: Sequence[ProcessWaits], owned: Mapping[int, Owned]
) -> tuple[ProcessWaits, ...]:
    """The processes of a cgroup that waited most; where none is known, those that it lists."""
    found = [each for each in processes if is_at_or_below(owned[each.process.pid].cgroup or "", quota.path)]
    if found:
        return tuple(found)
    level = Level(quota.path, quota.directory, quota.version)
    for each in (level, *level.children(host.fs)):
        pids = each.pids(host.fs)[:_MOST_MEMBERS]
        living = [_named(host, process) for pid in pids if not (process := host.process(pid)).has_ended]
        if living:
            return tuple(ProcessWaits(process, 0.0, None, None, 0, None) for process in living)
    return ()
