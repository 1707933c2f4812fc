"""JVMs that the kernel killed for memory, and JVMs in which nothing runs because a safepoint is not reached. Nothing is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.kernel_log import CLOCK_SLACK_S, kernel_kills, left_counters
from opskit.jvm.perfdata.stop_clock import CounterReader
from opskit.proc.cgroup.limits import oom_kills
from opskit.proc.files.boot_time import parse_uptime
from opskit.proc.files.schedstat import parse_schedstat
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import optional
from opskit.proc.thread_names import thread_name
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.collect.jvms import Seen
    from opskit.host import Host
    from opskit.jvm.discover import Jvm

_VM_THREAD, _FIRST_THREADS = "VM Thread", 256  # HotSpot starts its own threads first
# The VM thread sleeps a millisecond or less at a time while it waits for threads; idle, a second.
_WAITING_PER_S, _SUSPICIOUS = 200.0, 3
_RUNS = 0.1  # of the time, at least: on a crowded CPU it polls as often as it gets one
_CONFIRM_S = (0.05, 1.0)  # most suspects are busy with short stops
STALL_COUNTERS = ("sun.rt.safepoints", "sun.rt.safepointSyncTime")
_STALL_NAMES = frozenset(name.encode() for name in STALL_COUNTERS)
_LATELY_S = 24 * 3600.0
_GAP_S = 0.01


class Killed(NamedTuple):
    """A JVM that the OOM killer ended. `ago_s` None: in the window. `cgroup`: the one whose counter or limit shows it.

    `replaced`: it left no hsperfdata file, which the next JVM of its user removes.
    """

    pid: int
    start_ticks: int | None
    main: str
    ago_s: float | None
    cgroup: str | None
    limit_bytes: int | None
    evidence: str
    replaced: bool = False


class Stall(NamedTuple):
    """A safepoint that was not reached for `seconds`, and the thread that used most CPU meanwhile: (TID, name, share of a CPU)."""

    seconds: float
    thread: tuple[int, str, float] | None


def killed_before(host: Host, pids: Sequence[int] = ()) -> Iterator[Killed]:
    """Processes named java, or with one of these `pids`, that the kernel's log names as killed within the last day."""
    uptime_s = host.fs.maybe(parse_uptime, "uptime") or 0.0
    for pid, kill in kernel_kills(host).items():
        ago_s = max(0.0, uptime_s - kill.at_s)
        wanted = pid in pids if pids else kill.name == "java" and ago_s <= _LATELY_S
        if wanted and not _runs(host, pid):
            left = left_counters(host, pid, host.now().timestamp() - ago_s, kill.uid)
            main, path = (left.main, left.path) if left else (kill.name, None)
            evidence = "the kernel's log names it" + (f"; {path} is left" if path else "")
            evidence += "" if kill.by_cgroup else "; the whole machine was out of memory"
            yield Killed(pid, None, main, ago_s, None, None, evidence, replaced=not pids and path is None)


def _runs(host: Host, pid: int) -> bool:
    """Whether the process is there, and no zombie."""
    stat = host.fs.maybe(parse_stat, pid, "stat")
    return stat is not None and stat.state not in "ZX"


def killed_meanwhile(host: Host, gone: Sequence[Seen]) -> Iterator[Killed]:
    """Those of the JVMs that ended since the last look that were killed: by the kernel's log, or a counter of their cgroup."""
    kills = kernel_kills(host) if gone else {}
    for seen in gone:
        pid, start_ticks, limit = seen.jvm.pid, seen.jvm.start_ticks, seen.memory
        kill, start_s = kills.get(pid), (start_ticks or 0) / host.clock_ticks
        counted = _counted(host, seen)
        if kill is not None and start_s - CLOCK_SLACK_S <= kill.at_s:
            evidence = "the kernel's log names it"
        elif counted is not None:
            evidence = f"oom_kill of {counted[0]} went from {counted[1]} to {counted[2]} when it ended"
        else:
            continue
        path, limit_bytes = (limit.path, limit.limit_bytes) if limit is not None else (None, None)
        yield Killed(pid, start_ticks, seen.jvm.main, None, path, limit_bytes, evidence)


def _counted(host: Host, seen: Seen) -> tuple[str, int, int] | None:
    """(cgroup, count before, count now) of the nearest cgroup of the JVM that still exists, if it has counted a kill since."""
    now = oom_kills(host.fs, seen.memory_levels)
    for level in seen.memory_levels:
        if level.path in now:
            before, after = seen.oom_kills.get(level.path, 0), now[level.path]
            return (level.path, before, after) if after > before else None
    return None


def vm_thread(host: Host, pid: int) -> int | None:
    """The TID of HotSpot's VM thread; None where threads have no names (JDK 8)."""
    tids = optional(host.fs.tids, pid, default=[])[:_FIRST_THREADS]
    return next((tid for tid in tids if thread_name(host.fs, pid, tid) == _VM_THREAD), None)


def sleeps(host: Host, pid: int, tid: int | None) -> int | None:
    """How often a thread has given up its CPU."""
    status = None if tid is None else host.fs.maybe(parse_status, pid, "task", tid, "status")
    return None if status is None else integer(status.fields.get("voluntary_ctxt_switches", ""))


class _Suspect(NamedTuple):
    """A JVM, its VM thread, how often that has slept, and for how long it has waited for a CPU. `times`: of all threads, where they were read."""

    jvm: Jvm
    tid: int
    sleeps: int
    waited_s: float
    times: Mapping[int, tuple[str, int]] = {}


class Suspects:
    """The JVMs whose VM thread may wait for a safepoint, which 10 ms show; most are busy with short stops.

    On a crowded CPU 10 ms show nothing: `patient` looks at the others as well, once more at the end.
    """

    def __init__(self, host: Host, seen: Sequence[Seen], *, patient: bool = False) -> None:
        from opskit.jvm.attach.deadline import thread_times

        self.host = host
        self._jvms: list[_Suspect] = []
        self._others: list[_Suspect] = []
        self._begun_s = host.monotonic()
        if not host.can_look_after(_GAP_S):
            return
        if any(each.vm_sleeps is not None for each in seen):
            host.pause(_GAP_S)
        for each in seen:
            now = sleeps(host, each.jvm.pid, each.vm_thread)
            if each.vm_thread is None or now is None or each.vm_sleeps is None:
                continue
            suspect = _Suspect(each.jvm, each.vm_thread, now, _waited_s(host, each.jvm.pid, each.vm_thread))
            if now - each.vm_sleeps >= _SUSPICIOUS:
                self._jvms.append(suspect._replace(times=thread_times(host.fs, each.jvm.pid)))
            elif patient:
                self._others.append(suspect)
        self._begun_s = host.monotonic()

    def confirm(self) -> None:
        """Keep those whose VM thread has polled ever since, and whose counters have not moved."""
        seconds = self.host.monotonic() - self._begun_s
        self._jvms = [each for each in self._jvms if _still_waits(self.host, each, seconds)]

    def confirm_after(self, seconds: float) -> None:
        """The same at a time since the first look; without any suspect at once."""
        if self._jvms:
            self.host.pause(max(0.0, self._begun_s + seconds - self.host.monotonic()))
            self.confirm()

    def stalls(self) -> dict[int, Stall]:
        """Those that are left by PID."""
        from opskit.jvm.attach.deadline import busiest, thread_times

        elapsed_s = self.host.monotonic() - self._begun_s
        ticks = elapsed_s * self.host.clock_ticks
        others = [each for each in self._others if _still_waits(self.host, each, elapsed_s)]
        return {
            each.jvm.pid: Stall(elapsed_s, busiest(each.times, thread_times(self.host.fs, each.jvm.pid), ticks))
            for each in self._jvms
        } | {each.jvm.pid: Stall(elapsed_s, None) for each in others}


def stalls(host: Host, seen: Sequence[Seen]) -> dict[int, Stall]:
    """By PID, the JVMs whose VM thread has waited for a safepoint all the time. Takes 10 ms, and a second if one is suspected."""
    suspects = Suspects(host, seen)
    for until_s in _CONFIRM_S:
        suspects.confirm_after(until_s)
    return suspects.stalls()


def _waited_s(host: Host, pid: int, tid: int) -> float:
    """For how long a thread has waited for a CPU; 0 where the kernel does not count it."""
    counted = host.fs.maybe(parse_schedstat, pid, "task", tid, "schedstat")
    return 0.0 if counted is None else (counted.wait_ms or 0.0) / 1000


def _still_waits(host: Host, suspect: _Suspect, seconds: float) -> bool:
    """Whether the VM thread has polled since it was read `seconds` ago, and no safepoint was requested or reached."""
    pid, tid = suspect.jvm.pid, suspect.tid
    after = sleeps(host, pid, tid)
    if after is None:
        return False
    could_run_s = max(_RUNS * seconds, seconds - (_waited_s(host, pid, tid) - suspect.waited_s))
    return after - suspect.sleeps >= _WAITING_PER_S * could_run_s and not _has_moved(host, suspect.jvm)


def _has_moved(host: Host, jvm: Jvm) -> bool:
    """Whether a safepoint was requested or reached since the JVM was read; True where that is unknown."""
    before, later = jvm.perf, CounterReader(host.fs, jvm.perf, _STALL_NAMES).read()
    return before is None or later is None or any(later.number(name) != before.number(name) for name in STALL_COUNTERS)
