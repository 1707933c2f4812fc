"""What the machine and the cgroups of a process did in a window: CPUs, softirqs, switches, pressure, quotas, runnable tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.cpu_use import cpu_use
from opskit.collect.cswitch.facts import CpuLoad, Quota
from opskit.proc.cgroup.limits import quota_cpus, throttling
from opskit.proc.cgroup.tree import is_machine_root, visible_levels
from opskit.proc.files.cpu_times import parse_cpu_times, parse_switches
from opskit.proc.files.loadavg import parse_loadavg
from opskit.proc.files.pressure import parse_pressure, waiting_share
from opskit.proc.files.softirqs import parse_softirqs, softirqs_since
from opskit.proc.fs import optional
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.host import Host
    from opskit.proc.cgroup.limits import Throttling
    from opskit.proc.cgroup.tree import Level
    from opskit.proc.files.cpu_times import CpuTime

_NET_RX = "NET_RX"


class Moment(NamedTuple):
    """Counters of the machine. `pressure_us`: of the process's cgroup, or of the machine. None: unknown."""

    at_s: float
    cpus: dict[int, CpuTime]
    switches: int | None
    softirqs: dict[str, dict[int, int]]
    pressure_us: int | None


class Machine:
    """Reads the machine; `pid` None: its own pressure, else that of this process's cgroup."""

    def __init__(self, host: Host, pid: int | None) -> None:
        self._host = host
        levels = () if pid is None else visible_levels(host.fs, pid, "")[0][:1]
        self._pressures = tuple(level for level in levels if not is_machine_root(host.fs, level))
        self.pressure_of = "machine"
        self._runnable: list[int] = []

    def read(self) -> Moment:
        """The counters now."""
        fs = self._host.fs
        stat = fs.maybe(str, "stat", default="")
        at_s = self._host.monotonic()
        softirqs = fs.maybe(parse_softirqs, "softirqs") or {}
        return Moment(at_s, parse_cpu_times(stat), parse_switches(stat), softirqs, self._pressure_us())

    def sample_runnable(self) -> None:
        """Count the tasks that are runnable now, without opskit."""
        load = self._host.fs.maybe(parse_loadavg, "loadavg")
        if load is not None:
            self._runnable.append(max(0, load.runnable - 1))

    def is_crowded(self, cpus: int) -> bool:
        """Whether more tasks were runnable so far than there are CPUs."""
        return sum(self._runnable) > cpus * len(self._runnable)

    def take_runnable(self) -> float | None:
        """Their average since it was last taken; None: unknown."""
        seen, self._runnable = self._runnable, []
        return sum(seen) / len(seen) if seen else None

    def _pressure_us(self) -> int | None:
        for level in self._pressures:
            text = level.load(self._host.fs, "cpu.pressure")
            if text:
                self.pressure_of = "cgroup"
                return optional(parse_pressure, text)
        return self._host.fs.maybe(parse_pressure, "pressure", "cpu")


def loads(first: Moment, last: Moment) -> tuple[CpuLoad, ...]:
    """What each CPU did between two readings."""
    passed_s = max(last.at_s - first.at_s, 1e-6)

    softirqs = softirqs_since(first.softirqs, last.softirqs)

    def net_rx(cpu: int) -> float | None:
        count = softirqs.get(cpu, {}).get(_NET_RX)
        return None if count is None else count / passed_s

    return tuple(CpuLoad(use, net_rx(use.cpu)) for use in cpu_use(first.cpus, last.cpus))


def switches(first: Moment, last: Moment) -> float | None:
    """Context switches of the machine a second."""
    if first.switches is None or last.switches is None:
        return None
    return max(0, last.switches - first.switches) / max(last.at_s - first.at_s, 1e-6)


def pressure(first: Moment, last: Moment) -> float | None:
    """The share of the time in which some task waited for a CPU."""
    return waiting_share(first.pressure_us, last.pressure_us, max(last.at_s - first.at_s, 1e-6))


class Quotas:
    """The cgroups with a CPU quota above some processes, from when each was first asked for."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._above: dict[int, tuple[Level, ...]] = {}
        self._first: dict[str, tuple[float, Level, float, Throttling]] = {}

    def watch(self, pid: int) -> None:
        """Read the counters of its cgroups, where that is not done."""
        levels = self._above[pid] = visible_levels(self._host.fs, pid, "cpu")[0]
        for level in levels:
            cpus = None if level.path in self._first else quota_cpus(self._host.fs, level)
            if cpus is not None:
                self._first[level.path] = self._host.monotonic(), level, cpus, throttling(self._host.fs, level)

    def ran_out(self) -> bool:
        """Whether one of them has been used up by now."""
        return any(
            _more(first.throttled_periods, throttling(self._host.fs, level).throttled_periods)
            for _, level, _, first in self._first.values()
        )

    def end(self, demand: Mapping[int, float], cpus: int) -> dict[int, tuple[Quota, ...]]:
        """The quotas above each process that was watched. `demand`: how many of its threads ran or wanted to, on average.

        cpu.stat adds the time of all CPUs, of which a cgroup uses at most as many as it has such threads. `cpus`: of the machine.
        """
        wanted: dict[str, float] = {}
        for pid, levels in self._above.items():
            for level in levels:
                wanted[level.path] = wanted.get(level.path, 0.0) + demand.get(pid, 0.0)
        found = {path: self._quota(path, min(max(1.0, wanted.get(path, 0.0)), cpus)) for path in self._first}
        above = {
            pid: tuple(found[level.path] for level in levels if level.path in found)
            for pid, levels in self._above.items()
        }
        self._above, self._first = {}, {}
        return above

    def _quota(self, path: str, used_cpus: float) -> Quota:
        begun_s, level, cpus, first = self._first[path]
        last = throttling(self._host.fs, level)
        passed_s = max(self._host.monotonic() - begun_s, 1e-6)
        share = None
        if first.throttled_s is not None and last.throttled_s is not None:
            share = min(1.0, max(0.0, last.throttled_s - first.throttled_s) / passed_s / used_cpus)
        throttled_periods = _more(first.throttled_periods, last.throttled_periods)
        return Quota(path, cpus, _more(first.periods, last.periods), throttled_periods, share)


def _more(first: int | None, last: int | None) -> int:
    return max(0, (last or 0) - (first or 0))
