"""Sample a live JVM's safepoint counters and the kernel's counters of what delayed it; nothing is sent to the JVM.

    sun.rt.safepoints          safepoints asked for
    sun.rt.safepointTime       ticks stopped: from the request on up to JDK 12, from the arrival on since 13
    sun.rt.safepointSyncTime   ticks until all threads have arrived

A safepoint is counted when it is asked for, its times when they are over. Source: share/services/runtimeService.cpp.
"""

from __future__ import annotations

import posixpath
from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING

from opskit.collect.schedule import schedule, schedule_of_capture
from opskit.errors import BadInput, NoMoreSamples, NoSuchProcess, NotSupported, OpskitError
from opskit.jvm.discover import read_perfdata
from opskit.jvm.perfdata.hsperfdata import PerfData, parse_hsperfdata
from opskit.jvm.perfdata.stop_clock import jdk_of, whole_stop_s
from opskit.proc.cgroup.limits import cpu_limits
from opskit.proc.cgroup.owner import unit_of
from opskit.proc.cgroup.tree import Level, ancestry, is_machine_root, parse_cgroup
from opskit.proc.files.loadavg import parse_cpu_count, parse_loadavg
from opskit.proc.files.pressure import parse_pressure
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import optional
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.host import Host
    from opskit.proc.cgroup.limits import CpuLimit
    from opskit.proc.files.stat import ProcStat

# The VM thread sleeps a millisecond or less at a time while it waits for threads; idle, a second.
_WAITING_PER_S = 200.0
_LARGEST_FILE_BYTES = 16 << 20  # -XX:PerfDataMemorySize is 32 KiB by default
_VM_THREAD = "VM Thread"
_LOOKS, _LOOK_EVERY_S = 20, 0.001
_MUCH = 0.002  # of the time stopped: then a reading is likely to fall into a stop


class Reading(NamedTuple):
    """One look. Totals since the JVM, its cgroup or the machine started; None is unknown.

    `stopped_s` is the whole of the stops, TTSP included, on every JDK. `throttled_s` is summed over the CPUs; the
    stalled times are those in which some task of the cgroup (`pressure_of`: or of the machine) waited. `runnable`: at
    that moment, opskit included. `waiting`: the VM thread polls for threads that do not stop, and `late_thread` used the most CPU meanwhile.
    """

    at_s: float
    safepoints: int
    stopped_s: float
    ttsp_s: float | None
    throttled_s: float | None = None
    throttled_periods: int | None = None
    cpu_stalled_s: float | None = None
    memory_stalled_s: float | None = None
    io_stalled_s: float | None = None
    runnable: int | None = None
    major_faults: int | None = None
    waiting: bool = False
    late_thread: str | None = None
    quotas: Sequence[CpuLimit] = ()  # of its cgroup and of those above it


class Request(NamedTuple):
    """Which JVM, and how often. `intervals` None: until Ctrl-C or its end."""

    pid: int
    interval_s: float = 1.0
    intervals: int | None = 10


class Facts(NamedTuple):
    """What was read so far. `jdk`: the feature release; `java`: the version as text. `pressure_of`: "cgroup" or "machine".

    `late_samples`: how many came late. `ended`: why sampling ended early; NoSuchProcess: the JVM has ended.
    """

    pid: int
    start_ticks: int
    name: str
    java: str | None
    jdk: int | None
    unit: str | None
    cpus: int | None
    pressure_of: str | None
    readings: Sequence[Reading]
    late_samples: int = 0
    interrupted: bool = False
    ended: OpskitError | None = None
    cgroup: str | None = None  # whose pressure it is


def collect(host: Host, ask: Request, seen: Callable[[Facts], None] = lambda _: None) -> Facts:
    """Sample, and call `seen` after each interval, until the last one, Ctrl-C or an error; what was read so far counts.

    Raises what Probe raises, and KeyboardInterrupt, before the first interval is over.
    """
    host.prove_moving(f"safepoints {ask.pid}")
    probe = Probe(host, ask.pid)
    readings: list[Reading] = []
    java, name = probe.perf.text("java.property.java.version"), host.process(ask.pid).command
    unit = host.fs.maybe(lambda text: unit_of(parse_cgroup(text)), ask.pid, "cgroup")
    cpus = host.fs.maybe(parse_cpu_count, "stat")
    facts = Facts(ask.pid, probe.start_ticks, name, java, probe.jdk, unit, cpus, None, readings)
    try:
        samples = schedule_of_capture if host.is_recorded else schedule
        for _, late_s in samples(host, ask.interval_s, None if ask.intervals is None else ask.intervals + 1):
            readings.append(probe.read())
            late = facts.late_samples + (late_s > 0.5 * ask.interval_s)
            facts = facts._replace(pressure_of=probe.pressure_of, late_samples=late, cgroup=probe.cgroup)
            if len(readings) > 1:
                seen(facts)
    except (KeyboardInterrupt, OpskitError) as end:
        if len(readings) < 2:
            raise
        if isinstance(end, NoMoreSamples):
            return facts
        return facts._replace(ended=end) if isinstance(end, OpskitError) else facts._replace(interrupted=True)
    return facts


class Probe:
    """A reader of one JVM's counters. Raises what read_perfdata raises, and NotSupported where it has no such counters."""

    def __init__(self, host: Host, pid: int) -> None:
        fs = self._fs = host.fs
        self._pid, self._host, self._monotonic, self._sleep = pid, host, host.monotonic, host.sleep
        self.perf = read_perfdata(fs, pid, host.pause)
        self.jdk = jdk_of(self.perf)
        self.start_ticks = self._stat().start_ticks
        self._levels = self._cgroups("cpu", "memory", "pids")
        self._pressures = tuple(level for level in self._cgroups("")[:1] if not is_machine_root(fs, level))
        self._vm_thread = next((tid for tid, stat in self._threads() if stat.comm == _VM_THREAD), None)
        self._last: tuple[float, int, float | None] | None = None  # when, the VM thread's sleeps, TTSP
        self._ticks: dict[int, int] = {}
        self._stops_much = True
        self._last_time: tuple[float, float] | None = None
        self.pressure_of: str | None = None
        if self.perf.number("sun.rt.safepoints") is None:
            raise NotSupported(f"{pid} counts no safepoints: {self.perf.source} has no sun.rt.safepoints")

    @property
    def cgroup(self) -> str | None:
        """The cgroup whose pressure is read; None: the machine's is."""
        return self._pressures[0].path if self.pressure_of == "cgroup" else None

    def read(self) -> Reading:
        """Read everything at one moment. Raises NoSuchProcess where the JVM has ended."""
        stat = self._stat()
        if stat.start_ticks != self.start_ticks:
            raise NoSuchProcess(self._pid, "it ended while it was watched; another process has its number now")
        perf, at_s = self._between_stops()
        ttsp, time = perf.ticks_s("sun.rt.safepointSyncTime"), perf.ticks_s("sun.rt.safepointTime")
        safepoints = perf.number("sun.rt.safepoints")
        if time is None or safepoints is None:
            raise NotSupported(
                f"{self._pid} does not count its stopped time: {perf.source} has no sun.rt.safepointTime"
            )
        waiting, late = self._waiting(at_s, ttsp)
        quotas, throttled_s, throttled_periods = self._throttled()
        return Reading(
            at_s=at_s,
            safepoints=safepoints,
            stopped_s=whole_stop_s(self.jdk, time, ttsp),
            ttsp_s=ttsp,
            throttled_s=throttled_s,
            throttled_periods=throttled_periods,
            **{f"{resource}_stalled_s": self._stalled(resource) for resource in ("cpu", "memory", "io")},
            runnable=self._fs.maybe(lambda text: parse_loadavg(text).runnable, "loadavg"),
            major_faults=stat.major_faults,
            waiting=waiting,
            late_thread=late,
            quotas=quotas,
        )

    def _stat(self) -> ProcStat:
        stat = self._fs.maybe(parse_stat, self._pid, "stat")
        if stat is None or stat.is_exiting:
            raise NoSuchProcess(self._pid, "it ended while it was watched")
        return stat

    def _between_stops(self) -> tuple[PerfData, float]:
        """The counters at a moment outside of a stop, where one comes soon, and that moment.

        A time that moves while the count stays is the end of a stop. Where none ends within a few looks, stops are too short
        or too rare to matter.
        """
        perf, at_s = self._perfdata(), self._monotonic()
        for _ in range(_LOOKS if self._stops_much and self._host.can_look_after(_LOOK_EVERY_S) else 0):
            self._sleep(_LOOK_EVERY_S)
            later, at_s = self._perfdata(), self._monotonic()
            ended = later.number("sun.rt.safepointTime") != perf.number("sun.rt.safepointTime")
            same = later.number("sun.rt.safepoints") == perf.number("sun.rt.safepoints")
            perf = later
            if ended and same:
                break
        time = perf.ticks_s("sun.rt.safepointTime") or 0.0
        if self._last_time is not None and at_s > self._last_time[0]:
            self._stops_much = (time - self._last_time[1]) / (at_s - self._last_time[0]) > _MUCH
        self._last_time = at_s, time
        return perf, at_s

    def _perfdata(self) -> PerfData:
        """Read the file again by its path: maps, which may be large, is read once."""
        if self.perf.source.startswith("/"):
            with suppress(OSError, BadInput):  # deleted or changed: read_perfdata says why
                data = self._fs.read_untrusted(*posixpath.split(self.perf.source), _LARGEST_FILE_BYTES)[1]
                return parse_hsperfdata(data, self.perf.source)
        return read_perfdata(self._fs, self._pid)

    def _cgroups(self, *controllers: str) -> tuple[Level, ...]:
        found = (optional(ancestry, self._fs, self._pid, controller) for controller in controllers)
        return next((each.levels for each in found if each is not None), ())

    def _throttled(self) -> tuple[tuple[CpuLimit, ...], float | None, int | None]:
        """The quotas, seconds and periods, of the cgroup and of all above it: any of them can hold the JVM back."""
        found = [each for each in cpu_limits(self._fs, self._levels) if each.throttled_s is not None]
        if not found:
            return (), None, None
        periods = sum(each.throttled_periods or 0 for each in found)
        return tuple(found), sum(each.throttled_s or 0.0 for each in found), periods

    def _stalled(self, resource: str) -> float | None:
        for level in self._pressures:
            if text := level.load(self._fs, f"{resource}.pressure"):
                self.pressure_of = "cgroup"
                return _some_s(text)
        text = self._fs.maybe(str, "pressure", resource)  # switched off with psi=0: EOPNOTSUPP
        self.pressure_of = self.pressure_of or (None if text is None else "machine")
        return None if text is None else _some_s(text)

    def _threads(self) -> Iterator[tuple[int, ProcStat]]:
        for tid in optional(self._fs.tids, self._pid, default=[]):
            stat = self._fs.maybe(parse_stat, self._pid, "task", tid, "stat")
            if stat is not None:
                yield tid, stat

    def _waiting(self, at_s: float, ttsp_s: float | None) -> tuple[bool, str | None]:
        """Whether the VM thread has polled all the time since the last look, and no safepoint was reached."""
        sleeps = self._sleeps()
        last, self._last = self._last, None if sleeps is None else (at_s, sleeps, ttsp_s)
        if last is None or sleeps is None or at_s <= last[0]:
            return False, None
        if (sleeps - last[1]) / (at_s - last[0]) < _WAITING_PER_S or ttsp_s != last[2]:
            self._ticks = {}
            return False, None
        return True, self._busiest()

    def _sleeps(self) -> int | None:
        if self._vm_thread is None:
            return None
        status = self._fs.maybe(parse_status, self._pid, "task", self._vm_thread, "status")
        return None if status is None else integer(status.fields.get("voluntary_ctxt_switches", ""))

    def _busiest(self) -> str | None:
        """The thread that used the most CPU since it was last asked; None at first."""
        before, self._ticks = self._ticks, {}
        used = []
        for tid, stat in self._threads():
            self._ticks[tid] = stat.user_ticks + stat.system_ticks
            if tid in before and tid != self._vm_thread:
                used.append((self._ticks[tid] - before[tid], stat.comm))
        ticks, name = max(used, key=itemgetter(0), default=(0, None))
        return name if ticks > 1 else None


def _some_s(text: str) -> float | None:
    total_us = optional(parse_pressure, text)
    return None if total_us is None else total_us / 1e6
