"""Real-time threads (SCHED_FIFO, SCHED_RR, SCHED_DEADLINE: sched(7)) and how long they ran: a CPU runs no other thread meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.schedstat import SchedStat, parse_schedstat
from opskit.proc.files.stat import parse_placement, parse_stat
from opskit.proc.fs import optional
from opskit.proc.kernel.affinity import allowed_cpus, real_time_policy
from opskit.proc.thread_names import thread_name
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.host import Host
    from opskit.proc.process import Process

_LEAST_RUNNING = 0.001  # of a CPU: others are not listed
_MOST = 50


class RealTime(NamedTuple):
    """A thread. `policy`: fifo, rr or deadline. `running`: share of the window on a CPU. `slice_s`: how long it kept one on average.

    `allowed`: the CPUs that it may use, `cpu`: the one that it ran on last. None: unknown.
    """

    process: Process
    tid: int
    name: str
    policy: str
    allowed: frozenset[int]
    cpu: int | None
    running: float
    slice_s: float | None = None


class _Thread(NamedTuple):
    pid: int
    start_ticks: int
    policy: str
    times: SchedStat


class RealTimeScan:
    """The real-time threads of the machine before a window. Those that end in it are not seen, nor how long others ran that became such ones."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known: set[int] = set()
        self._threads = {tid: thread for tid, thread in self._now() if thread is not None}

    def _now(self) -> Iterator[tuple[int, _Thread | None]]:
        """The threads by number; None for one of another class."""
        if not self._host.is_own:  # their numbers are not ours
            return
        ask = self._host.fs.calls.ask
        for pid in self._host.fs.pids():
            for tid in optional(self._host.fs.tids, pid, default=[]):
                self._known.add(tid)
                policy = optional(ask, real_time_policy, tid)
                yield tid, None if policy is None else self._read(pid, tid, policy)

    def _read(self, pid: int, tid: int, policy: str) -> _Thread | None:
        base = (pid, "task", tid)
        stat = self._host.fs.maybe(parse_stat, *base, "stat")
        times = self._host.fs.maybe(parse_schedstat, *base, "schedstat")
        return None if stat is None or times is None else _Thread(pid, stat.start_ticks, policy, times)

    def end(self, elapsed_s: float) -> tuple[RealTime, ...]:
        """Those that ran since, the busiest first."""
        moved = []
        known = frozenset(self._known)
        for tid, now in self._now():
            before = self._threads.get(tid)
            if now is None or (before is None and tid in known):
                continue
            if before is None or before.start_ticks != now.start_ticks:  # it started in the window
                before = now._replace(times=SchedStat(0.0, 0.0, 0))
            ran_s = (now.times.cpu_ms - before.times.cpu_ms) / 1000
            if ran_s >= _LEAST_RUNNING * elapsed_s:
                moved.append((ran_s, tid, before, now))
        moved.sort(key=lambda each: (-each[0], each[1]))
        return tuple(self._records(moved[:_MOST], elapsed_s))

    def _records(self, moved: list[tuple[float, int, _Thread, _Thread]], elapsed_s: float) -> Iterator[RealTime]:
        fs = self._host.fs
        for ran_s, tid, before, now in moved:
            name, process = thread_name(fs, now.pid, tid), self._host.process(now.pid)
            if name is None or process.has_ended:
                continue
            placement = fs.maybe(parse_placement, now.pid, "task", tid, "stat")
            slices = (now.times.slices or 0) - (before.times.slices or 0)
            yield RealTime(
                process, tid, name, now.policy, optional(fs.calls.ask, allowed_cpus, tid, default=frozenset()),
                placement and placement.cpu, min(ran_s / elapsed_s, 1.0), ran_s / slices if slices > 0 else None,
            )  # fmt: skip
