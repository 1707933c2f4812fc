"""What `--when` waits for: a value that is looked at again and again, cheaply, until it is above a limit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.catalog import CHECKS, FINDINGS
from opskit.collect.capture.found_by import checks_of
from opskit.errors import BadInput, NoSuchProcess, NotSupported, UsageError
from opskit.jvm.discover import HOTSPOT, find_jvms
from opskit.jvm.perfdata.counters import counts_new_objects, gc_work, heap
from opskit.jvm.perfdata.stop_clock import STOP_COUNTERS, CounterReader, stopped_s
from opskit.proc.cgroup.limits import cpu_limit
from opskit.proc.cgroup.tree import visible_levels
from opskit.proc.files.cpu_times import parse_cpu_list, parse_cpu_times, read_online_cpus
from opskit.proc.files.pressure import NONE_HERE, parse_pressure, waiting_share
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.quantities import decimal, percent
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opskit.host import Host
    from opskit.jvm.discover import Jvm
    from opskit.jvm.perfdata.hsperfdata import PerfData

FORMS = "'cpu>80', 'stopped>20', 'heap>90', 'psi.memory>10' (or psi.cpu, psi.io) or 'finding=CODE'"
_VALUE = re.compile(r"\s*(cpu|stopped|heap|psi\.(?:cpu|memory|io))\s*(>=?)\s*([0-9.]+)\s*%?\s*")
_FINDING = re.compile(r"\s*finding\s*=\s*([a-z][a-z0-9-]*)\s*")
JVMS_EVERY_S = 10.0  # JVMs that have started since are found
FINDING_EVERY_S = 10.0
_ENDED = "it ended while it was watched"


class Condition(NamedTuple):
    """`cpu>80`: `name`, percent, and whether that value itself holds (`>=`); of a finding: its `code` alone."""

    text: str
    name: str
    above_percent: float = 0.0
    or_equal: bool = False
    code: str | None = None

    def holds(self, share: float | None) -> bool:
        """Whether a share, from 0 to 1, meets it; None, an unknown one, does not."""
        value = None if share is None else share * 100
        return value is not None and (value > self.above_percent or (self.or_equal and value == self.above_percent))

    @property
    def checks(self) -> tuple[str, ...]:
        """The checks that can find the code and send nothing."""
        return tuple(name for name in checks_of(self.code or "") if not CHECKS[name].ask)


def parse_condition(text: str) -> Condition:
    """The condition in words. Raises UsageError, which lists the forms."""
    found = _VALUE.fullmatch(text)
    if found is not None:
        limit = decimal(found[3])
        if limit is None or limit > 100:
            raise UsageError(f"--when {text!r}: {found[3]!r} is not a percentage from 0 to 100")
        return Condition(text.strip(), found[1], limit, found[2] == ">=")
    named = _FINDING.fullmatch(text)
    if named is None:
        raise UsageError(f"--when {text!r} is not a condition; write {FORMS}")
    if named[1] not in FINDINGS:
        from difflib import get_close_matches

        near = get_close_matches(named[1], FINDINGS, n=1, cutoff=0.5)
        meant = f", did you mean {near[0]!r}?" if near else "; docs/findings.md lists the codes"
        raise UsageError(f"--when {text!r}: no finding has the code {named[1]!r}{meant}")
    condition = Condition(text.strip(), "finding", code=named[1])
    if not condition.checks:
        asks = "only with --ask" if checks_of(named[1]) else "not"
        raise UsageError(f"--when {text!r}: doctor finds {named[1]} {asks}, so that it cannot be waited for")
    return condition


class Looked(NamedTuple):
    """One look: the share from 0 to 1, None where it is unknown yet; in words; whether the condition holds."""

    holds: bool
    said: str


def watcher(host: Host, condition: Condition, pids: Sequence[int]) -> Callable[[], Looked]:
    """Gives a function that looks once. Raises NotSupported where the machine cannot tell."""
    if condition.name == "cpu":
        share: Callable[[], float | None] = _CpuOf(host, pids).share if pids else _Cpu(host).share
    elif condition.name.startswith("psi."):
        share = _Pressure(host, condition.name[4:]).share
    else:
        share = _Jvms(host, condition.name, pids).share

    def look() -> Looked:
        value = share()
        return Looked(condition.holds(value), f"{condition.name} {'unknown' if value is None else percent(value)}")

    return look


class _Cpu:
    """The share of all CPUs that had work, between two looks."""

    def __init__(self, host: Host) -> None:
        self._fs = host.fs
        self._before = host.fs.load(parse_cpu_times, "stat")
        if not self._before:
            raise NotSupported(f"--when cpu: {host.fs.path('stat')} shows no CPU")

    def share(self) -> float | None:
        now = self._fs.load(parse_cpu_times, "stat")
        spent = [times.since(self._before[cpu]) for cpu, times in now.items() if cpu in self._before]
        self._before = now
        total = sum(each.total_ticks for each in spent)
        return 1 - sum(each.idle_ticks for each in spent) / total if total else None


class _CpuOf:
    """The highest share that a process uses of the CPUs that it may use: its affinity and its cgroup's quota, between two looks."""

    def __init__(self, host: Host, pids: Sequence[int]) -> None:
        self._host = host
        self._cpus = {pid: self._usable(pid) for pid in pids}
        self._before = self._read()

    def _usable(self, pid: int) -> float:
        fs = self._host.fs
        status = fs.maybe(parse_status, pid, "status")
        allowed = parse_cpu_list(status.fields.get("Cpus_allowed_list", "")) if status else None
        online = read_online_cpus(fs)
        cpus = len((allowed or frozenset(online)).intersection(online)) or len(online)
        levels, _ = visible_levels(fs, pid, "cpu")
        quota = cpu_limit(fs, levels).cpus if levels else None
        return min(cpus, quota) if quota else cpus

    def _read(self) -> dict[tuple[int, int], tuple[int, float]]:
        """Ticks and when they were read, by PID and start time. Raises NoSuchProcess when all have ended."""
        found = {}
        for pid in self._cpus:
            stat = self._host.fs.maybe(parse_stat, pid, "stat")
            if stat is not None:
                found[pid, stat.start_ticks] = stat.user_ticks + stat.system_ticks, self._host.monotonic()
        if not found:
            raise NoSuchProcess(next(iter(self._cpus)), _ENDED)
        return found

    def share(self) -> float | None:
        before, self._before = self._before, self._read()
        shares = [
            (ticks - before[key][0]) / self._host.clock_ticks / (at_s - before[key][1]) / self._cpus[key[0]]
            for key, (ticks, at_s) in self._before.items()
            if key in before and at_s > before[key][1]
        ]
        return min(1.0, max(shares)) if shares else None


class _Pressure:
    """The share of the time in which tasks waited, between two looks."""

    def __init__(self, host: Host, what: str) -> None:
        self._host, self._what = host, what
        try:
            self._before = self._read()
        except (OSError, BadInput):
            raise NotSupported(f"--when psi.{what}: {NONE_HERE}") from None
        self._at_s = host.monotonic()

    def _read(self) -> int | None:
        return self._host.fs.load(parse_pressure, "pressure", self._what)

    def share(self) -> float | None:
        now, at_s = self._read(), self._host.monotonic()
        found = waiting_share(self._before, now, at_s - self._at_s)
        self._before, self._at_s = now, at_s
        return found


class _Jvms:
    """The highest of all JVMs, or of those that are asked about: used heap (as of the last collection), or stopped time."""

    def __init__(self, host: Host, what: str, pids: Sequence[int]) -> None:
        self._host, self._pids = host, pids
        self._measure = self._heap if what == "heap" else self._stopped
        self._before: Mapping[int, tuple[float, float]] = {}
        self._now: dict[int, tuple[float, float]] = {}
        self._least: dict[int, tuple[int | None, float | None]] = {}
        self._jvms: list[Jvm] = []
        self._due_s = 0.0
        self._find()
        if not any(jvm.perf for jvm in self._jvms):
            of = " among these processes" if pids else ""
            why = next((str(jvm.no_perf) for jvm in self._jvms if jvm.no_perf), f"no JVM runs{of}")
            raise NotSupported(f"--when {what}: {why}")
        self.share()

    def _find(self) -> None:
        found = find_jvms(self._host.fs, self._host.clock_ticks)
        self._jvms = [jvm for jvm in found if jvm.kind == HOTSPOT and (not self._pids or jvm.pid in self._pids)]
        self._due_s = self._host.monotonic() + JVMS_EVERY_S

    def share(self) -> float | None:
        if self._host.monotonic() >= self._due_s:
            self._find()
            if self._pids and not self._jvms:
                raise NoSuchProcess(self._pids[0], _ENDED)
        self._before, self._now = self._now, {}
        shares = [self._measure(jvm.pid, perf) for jvm in self._jvms if (perf := self._read(jvm)) is not None]
        return max((share for share in shares if share is not None), default=None)

    def _read(self, jvm: Jvm) -> PerfData | None:
        perf = CounterReader(self._host.fs, jvm.perf, STOP_COUNTERS if self._measure == self._stopped else None).read()
        if perf is None and jvm.perf is not None:
            self._due_s = 0.0  # it has ended, or its file is found in another way
        return perf

    def _heap(self, pid: int, perf: PerfData) -> float | None:
        """Of collectors that count new objects, which fill any heap: the least since the last collection, once there was one."""
        found = heap(perf)
        if not (found and found.used_bytes and found.max_bytes):
            return None
        share = found.used_bytes / found.max_bytes
        if not counts_new_objects(perf):
            return share
        collections = gc_work(perf).collections
        before = self._least.get(pid)
        least = None
        if before is not None:
            least = share if before[0] != collections else None if before[1] is None else min(share, before[1])
        self._least[pid] = collections, least
        return least

    def _stopped(self, pid: int, perf: PerfData) -> float | None:
        total_s, at_s = stopped_s(perf), self._host.monotonic()
        if total_s is None:
            return None
        self._now[pid] = total_s, at_s
        before = self._before.get(pid)
        if before is None or at_s <= before[1]:
            return None
        return min(1.0, max(0.0, total_s - before[0]) / (at_s - before[1]))
