"""Read in a window whether threads get a CPU when they want one: those of a process, or of all processes of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.cswitch.facts import Facts, ProcessWaits
from opskit.collect.cswitch.handoffs import Handoffs
from opskit.collect.cswitch.machine import Machine, Quotas, loads, pressure, switches
from opskit.collect.cswitch.sweep import Sweep
from opskit.collect.given_pids import GivenPids
from opskit.collect.softirq_losses import accounts_irqs, measuring_losses, recorded_losses, with_loss, worth_measuring
from opskit.collect.windows import Windows, uneven_moments
from opskit.proc.cpu_topology import read_cpuset, read_topology
from opskit.proc.files.cpu_times import parse_cpu_times
from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import optional
from opskit.proc.process import real_uid
from opskit.proc.visibility import coverage_lines
from opskit.quantities import integer, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.collect.cswitch.facts import CpuLoad, Quota, Request, Thread
    from opskit.collect.cswitch.machine import Moment
    from opskit.collect.cswitch.sweep import Moved, Swept
    from opskit.host import Host

    Threads = Mapping[int, Sequence[Thread]]  # by process

_PROBE = 0.2  # of the window: then it is known which threads move
_SAMPLES, _SHORTEST_S, _LONGEST_S = 60, 0.01, 0.25  # looks at the run queues in a window, and how far apart
_HUNGRY = 0.1  # of the time up to the probe, waiting: worth asking who has the CPUs
_MOST_QUOTAS = 32  # processes whose cgroups are read
_SHOWN = 0.001  # of a CPU, running or waiting: less is no row of the machine
_MEASURES = 0.02  # of the window: how long the loss of a CPU is measured, for which its threads wait
_QUEUED = 0.5  # tasks above the CPUs in use: somebody waits
_UNLISTED, _UNLISTED_CPUS, _MANY_ENDED = 0.1, 0.02, 20
_PINNED_RUNS, _MOST_PINNED, _NEARLY = 0.05, 5, 16  # a thread that may use a sixteenth of the CPUs is pinned


class Collector:
    """Looks once, or again and again for a watch: then each window begins where the last one ended."""

    def __init__(self, host: Host, ask: Request, *, watch: bool = False) -> None:
        """Check the request. Raises NoSuchProcess, NotSupported for a copy, which has no rates."""
        host.prove_moving("opskit cswitch")
        self._host, self._ask, self._watch = host, ask, watch
        self._given = GivenPids(host, () if ask.pid is None else (ask.pid,), "cswitch")
        self._ours = integer(optional(host.fs.link, "self", default=b""))
        self._wanted: dict[int, bool] = {}
        self._sweep = Sweep(host, self._all_pids if ask.pid is None else self._given.living)
        self._machine = Machine(host, ask.pid)
        self._quotas = Quotas(host)
        self._windows = Windows(host, ask.window_s, watch=watch)
        self._topology = read_topology(host.fs)
        self._last: Moment | None = None
        self._last_ticks: int | None = None
        self._is_jvm: bool | None = None
        self._java_names: dict[int, str] = {}

    def look(self) -> Facts:
        """Read one window. Raises NoSuchProcess where the process has ended."""
        host, pid = self._host, self._ask.pid
        begun_s, begin = host.monotonic(), host.moment
        self._given.living()
        self._sweep.begin()
        if self._last is None:
            self._last, self._last_ticks = self._machine.read(), self._used_ticks()
        if pid is not None:
            self._quotas.watch(pid)
        end_s, now_s = self._windows.end_s(begun_s), host.monotonic()
        self._sample(now_s + _PROBE * (end_s - now_s))
        moved = self._sweep.probe()
        with host.looking_back(begin):
            others = self._ask_who_runs(moved)
        handoffs = Handoffs(host, moved if pid is not None else ())
        with measuring_losses(host, self._flooded(), end_s, _MEASURES * self._ask.window_s) as losses:
            self._sample(end_s, handoffs)
            lost = recorded_losses(host, self._last.cpus, self._left_alone) if host.is_recorded else losses()
        ended_s = host.monotonic()
        facts = self._end(self._last, others, lost)
        self._windows.look_done(ended_s)
        return facts._replace(handoffs=handoffs.end())

    def _all_pids(self) -> Iterator[int]:
        """The processes of the users that were asked for, without opskit."""
        for pid in self._host.fs.pids():
            if pid == self._ours:
                continue
            if self._ask.uids and pid not in self._wanted:
                self._wanted[pid] = self._host.fs.maybe(real_uid, pid, "status") in self._ask.uids
            if not self._ask.uids or self._wanted[pid]:
                yield pid

    def _other_pids(self) -> Iterator[int]:
        return (pid for pid in self._host.fs.pids() if pid not in (self._ours, self._ask.pid))

    def _sample(self, end_s: float, handoffs: Handoffs | None = None) -> None:
        """Look at the run queues, and at threads that may wake each other, until then."""
        step_s = min(max(self._ask.window_s / _SAMPLES, _SHORTEST_S), _LONGEST_S)
        for _ in uneven_moments(self._host, step_s, end_s):
            self._machine.sample_runnable()
            if handoffs is not None:
                handoffs.look()

    @property
    def _left_alone(self) -> frozenset[int]:
        return self._topology.isolated | self._topology.tickless

    def _flooded(self) -> Sequence[int]:
        """The CPUs with many softirqs so far, where the kernel only samples their time."""
        if self._last is None or not self._host.is_here or accounts_irqs(self._last.cpus) is not False:
            return ()
        now = self._host.fs.maybe(parse_cpu_times, "stat", default={})
        return worth_measuring(self._last.cpus, now, self._left_alone)

    def _ask_who_runs(self, moved: Sequence[Moved]) -> Sweep | None:
        """Where threads wait: read the quotas of their cgroups, and for a process which others use the CPUs."""
        waits: dict[int, float] = {}
        for one in moved:
            waits[one.pid] = waits.get(one.pid, 0.0) + (one.waiting or 0.0)
        hungry = [pid for pid in sorted(waits, key=lambda pid: -waits[pid])[:_MOST_QUOTAS] if waits[pid] >= _HUNGRY]
        if self._ask.pid is None:
            for pid in hungry:
                self._quotas.watch(pid)
            return None
        is_crowded = self._machine.is_crowded(len(self._topology.online))
        if not hungry and not is_crowded:  # a thread may have waited all the time
            return None
        others = Sweep(self._host, self._other_pids)
        others.begin()
        return others

    def _end(self, first: Moment, others: Sweep | None, lost: Mapping[int, float]) -> Facts:
        """Read everything again, and compare. `lost`: what was measured of CPUs with many softirqs."""
        host, pid = self._host, self._ask.pid
        last, ticks = self._machine.read(), self._last_ticks
        runnable, cpus = self._machine.take_runnable(), [_measured(cpu, lost) for cpu in loads(first, last)]
        in_use = sum(1 - cpu.use.idle for cpu in cpus)
        somebody_waits = runnable is None or runnable > in_use + _QUEUED or self._quotas.ran_out()
        online = frozenset(last.cpus)
        swept = self._sweep.end(online, look_for_stuck=somebody_waits)
        elsewhere: Threads = others.end(online, look_for_stuck=somebody_waits).threads if others else {}
        self._last, self._last_ticks = (last, self._used_ticks()) if self._watch else (None, None)
        quotas = self._quotas.end({one: _usable(threads) for one, threads in swept.threads.items()}, len(cpus) or 1)
        threads = {one: _throttled(found, quotas.get(one, ())) for one, found in swept.threads.items()}
        window_s = last.at_s - first.at_s
        missing = list(self._missing(swept, threads, window_s, ticks))
        if pid is not None:
            threads[pid] = self._with_java(threads.get(pid, []), missing)
        return Facts(
            None if pid is None else host.process(pid), window_s, () if pid is None else tuple(threads[pid]),
            tuple(self._processes(threads if pid is None else elsewhere)), self._with_pinned(cpus, (threads, elsewhere)),
            tuple(dict.fromkeys(quota for above in quotas.values() for quota in above)),
            runnable, switches(first, last), pressure(first, last), self._topology.isolated, bool(self._is_jvm),
            tuple(missing), swept.seen,
            cpuset=read_cpuset(host.fs, "self" if pid is None else pid, frozenset(self._topology.online)),
            pressure_of=self._machine.pressure_of,
        )  # fmt: skip

    def _used_ticks(self) -> int | None:
        """CPU time of the process, with threads that have ended."""
        stat = None if self._ask.pid is None else self._host.fs.maybe(parse_stat, self._ask.pid, "stat")
        return None if stat is None else stat.user_ticks + stat.system_ticks

    def _processes(self, threads: Threads) -> Iterator[ProcessWaits]:
        """Those that ran or waited, longest waits first."""
        found, online = [], frozenset(self._topology.online)
        for pid, moved in threads.items():
            if _demand(moved) < _SHOWN:
                continue
            process = self._host.process(pid)
            if process.start_ticks is None or (
                self._ask.uids and self._ask.pid is None and process.uid not in self._ask.uids
            ):
                continue  # it has ended, or another one has its PID
            worst = max(moved, key=lambda one: (one.waiting or 0.0, one.running))
            counted = (
                moved if self._ask.pid is None else ()
            )  # of processes beside the one asked for, switches are not read twice
            if 0 < len(worst.allowed) < len(online) and (worst.waiting or 0.0) >= _HUNGRY and self._ask.pid is None:
                worst = worst._replace(cpuset=read_cpuset(self._host.fs, pid, online))
            found.append(ProcessWaits(
                process, sum(one.running for one in moved), _sum(one.waiting for one in moved), _sum(one.slices for one in moved),
                len(moved), worst, _sum(one.voluntary for one in counted), _sum(one.involuntary for one in counted),
            ))  # fmt: skip
        yield from sorted(found, key=lambda one: (-(one.waiting or 0.0), -one.running, one.process.pid))

    def _with_pinned(self, cpus: Sequence[CpuLoad], sweeps: Sequence[Threads]) -> tuple[CpuLoad, ...]:
        """The CPUs with the threads that may run nowhere else, or nearly. One CPU that is all there is pins nobody."""
        few = max(1, len(cpus) // _NEARLY) if len(cpus) > 1 else 0
        found: dict[int, list[tuple[int, int, str, float]]] = {}
        for pid, threads in ((pid, threads) for sweep in sweeps for pid, threads in sweep.items()):
            for one in threads:
                if 0 < len(one.allowed) <= few and one.running >= _PINNED_RUNS and not self._is_kernel_thread(pid):
                    for cpu in one.allowed:
                        found.setdefault(cpu, []).append((pid, one.tid, one.java_name or one.name, one.running))
        busiest = {cpu: sorted(all_, key=lambda each: -each[3])[:_MOST_PINNED] for cpu, all_ in found.items()}
        return tuple(cpu._replace(pinned=tuple(busiest.get(cpu.use.cpu, ()))) for cpu in cpus)

    def _is_kernel_thread(self, pid: int) -> bool:
        stat = self._host.fs.maybe(parse_stat, pid, "stat")
        return stat is not None and stat.is_kernel_thread

    def _with_java(self, threads: Sequence[Thread], missing: list[str]) -> list[Thread]:
        """The threads by the names that one dump gives them; a watch takes another one for threads that it does not know."""
        pid = self._ask.pid
        if pid is None or not threads:
            return list(threads)
        if self._is_jvm is None:
            from opskit.jvm.mapped_files import parse_jvm_maps

            maps = self._host.fs.maybe(parse_jvm_maps, pid, "maps")
            self._is_jvm = maps is not None and maps.is_jvm
        if self._ask.ask and self._is_jvm and any(one.tid not in self._java_names for one in threads):
            from opskit.collect.java_threads import java_threads
            from opskit.proc.fd_waits import inner_id

            names = java_threads(self._host, pid, missing)
            for one in threads:
                thread = names.get(inner_id(self._host.fs, pid, one.tid))
                self._java_names[one.tid] = thread.name if thread is not None and thread.name else ""
        return [one._replace(java_name=self._java_names.get(one.tid) or None) for one in threads]

    def _missing(self, swept: Swept, threads: Threads, window_s: float, ticks: int | None) -> Iterator[str]:
        """What the figures do not hold."""
        if not self._sweep.has_waits:
            yield "how long threads wait for a CPU is unknown: this kernel does not fill schedstat (CONFIG_SCHED_INFO)"
        if self._ask.pid is None:
            yield from coverage_lines(self._host.fs, swept.processes, [], 0)
            if swept.ended >= _MANY_ENDED:
                yield f"{plural(swept.ended, 'thread')} ended in the window; what they did is not counted"
            return
        later = self._used_ticks()
        if swept.ended and ticks is not None and later is not None:
            used = (later - ticks) / self._host.clock_ticks / max(window_s, 1e-6)
            unlisted = used - sum(one.running for one in threads.get(self._ask.pid, ()))
            if unlisted >= max(_UNLISTED_CPUS, _UNLISTED * used):
                yield f"{plural(swept.ended, 'thread')} ended in the window, and used {percent(unlisted)} of a CPU"


def _measured(cpu: CpuLoad, lost: Mapping[int, float]) -> CpuLoad:
    share = lost.get(cpu.use.cpu)
    return cpu if share is None else cpu._replace(use=with_loss(cpu.use, share), is_measured=True)


def _demand(threads: Sequence[Thread]) -> float:
    """How many of them ran or wanted to, on average."""
    return sum(one.running + (one.waiting or 0.0) for one in threads)


def _usable(threads: Sequence[Thread]) -> float:
    """On how many CPUs they can be throttled at a time: their demand, at most the CPUs that they may use."""
    busy = [one for one in threads if one.allowed]
    allowed = len(frozenset().union(*(one.allowed for one in busy))) if busy else 0
    return min(_demand(threads), allowed) if allowed else _demand(threads)


def _sum(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _throttled(threads: Sequence[Thread], quotas: Sequence[Quota]) -> list[Thread]:
    """The threads with the part of their waits that the quotas above them explain."""
    most = max(quotas, key=lambda quota: (quota.throttled or 0.0, quota.throttled_periods), default=None)
    if most is None or not most.throttled_periods:
        return list(threads)
    share = most.throttled or 0.0
    return [one._replace(throttled=min(one.waiting or 0.0, share), throttled_by=most.path) for one in threads]
