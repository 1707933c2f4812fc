"""What threads did in a window: schedstat of all of them at its begin, a moment later and at its end, `sched` of those that moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.cswitch.facts import Thread
from opskit.errors import BadInput
from opskit.proc.files.cpu_times import parse_cpu_list
from opskit.proc.files.schedstat import SchedStat, parse_schedstat
from opskit.proc.files.stat import parse_placement, parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.files.task_sched import TaskSched, parse_task_sched
from opskit.proc.fs import DENIED, GONE, optional
from opskit.proc.thread_names import thread_name
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opskit.host import Host

_BUSY = 0.005  # of the window, running or waiting: only of these is more read than their counters
_RUNNABLE = "R"
_NOTHING = TaskSched("", 0, 0, 0, None)


class Reading(NamedTuple):
    """A thread at one moment: its process, and the content of its schedstat (or of `stat`, where there is none)."""

    pid: int
    at_s: float
    raw: bytes


class Moved(NamedTuple):
    """How far a thread came since the window's begin, as shares of the time."""

    pid: int
    tid: int
    running: float
    waiting: float | None
    slices: float | None


class Swept(NamedTuple):
    """The threads that moved, by process; how many threads and processes there are in all, and how many threads ended in the window."""

    threads: dict[int, list[Thread]]
    seen: int
    processes: int
    ended: int


class Sweep:
    """All threads of some processes. Where it is asked again, the window begins where the last one ended.

    A TID that was given to another thread meanwhile is noticed when a counter fell; else what is wrong is at most what the old one had used.
    """

    def __init__(self, host: Host, pids: Callable[[], Iterable[int]]) -> None:
        self._host, self._pids = host, pids
        self._first: dict[int, Reading] = {}
        self._switches: dict[int, tuple[float, TaskSched]] = {}
        self._begun_s, self._moment = host.monotonic(), host.moment
        self._online: frozenset[int] = frozenset()
        self.has_waits = any(_counts_waits(host, pid) for pid in ("self", 1))
        self._file = "schedstat" if self.has_waits else "stat"

    def begin(self) -> None:
        """Read all threads, unless the end of the last window is known."""
        if not self._first:
            self._begun_s, self._moment = self._host.monotonic(), self._host.moment
            self._first = dict(self._read_all())

    def probe(self) -> list[Moved]:
        """The threads that have moved since. Their switches are read now (in a capture: of the window's begin), and once more at the end."""
        moved = []
        for tid, first in self._first.items():
            now = self._read(first.pid, tid)
            one = None if now is None or now.raw == first.raw else self._moved(tid, first, now)
            if one is not None:
                moved.append(one)
        with self._host.looking_back(self._moment):
            for one in moved:
                if one.tid not in self._switches:
                    self._read_switches(one.pid, one.tid)
        return moved

    def end(self, online: frozenset[int], *, look_for_stuck: bool) -> Swept:
        """What each thread did. `online`: the CPUs. `look_for_stuck`: ask for those that wanted to run and never did."""
        self._online = online
        before, switches, begun_s = self._first, self._switches, self._begun_s
        self._begun_s, self._moment = self._host.monotonic(), self._host.moment
        last = dict(self._read_all())
        self._first, self._switches = last, {}
        found: dict[int, list[Thread]] = {}
        for tid, now in last.items():
            first = before.get(tid)
            if first is not None and first.raw == now.raw:
                thread = self._stuck(tid, now) if look_for_stuck else None
            else:
                thread = self._since(tid, first, now, begun_s, switches.get(tid))
            if thread is not None:
                found.setdefault(now.pid, []).append(thread)
        ended = sum(tid not in last for tid in before)
        return Swept(found, len(last), len({now.pid for now in last.values()}), ended)

    def _read_all(self) -> Iterator[tuple[int, Reading]]:
        for pid in self._pids():
            for tid in optional(self._host.fs.tids, pid, default=[]):
                found = self._read(pid, tid)
                if found is not None:
                    yield tid, found

    def _read(self, pid: int, tid: int) -> Reading | None:
        fs = self._host.fs
        try:
            raw = fs.read_path(f"{fs.proc}/{pid}/task/{tid}/{self._file}")
        except (*GONE, DENIED):
            return None
        return Reading(pid, self._host.monotonic(), raw)

    def _since(
        self, tid: int, first: Reading | None, now: Reading, begun_s: float, switches: tuple[float, TaskSched] | None
    ) -> Thread | None:
        """What a thread did since its first reading; since the window's begin where it is new. None: unknown, or it has ended."""
        new = Reading(now.pid, begun_s, b"0 0 0")
        begin = new if first is None or first.pid != now.pid else first
        moved = self._moved(tid, begin, now)
        if moved is not None and (moved.running < 0 or (moved.waiting or 0) < 0):
            begin, moved = new, self._moved(tid, new, now)
        if moved is None:
            return None
        return self._thread(moved, now.at_s - begin.at_s, (begun_s, _NOTHING) if begin is new else switches)

    def _moved(self, tid: int, first: Reading, now: Reading) -> Moved | None:
        """Negative where the counters fell; None for a text that was cut short."""
        then, later, passed_ms = self._times(first.raw), self._times(now.raw), 1000 * max(now.at_s - first.at_s, 1e-6)
        if then is None or later is None:
            return None
        waiting = slices = None
        if then.wait_ms is not None and later.wait_ms is not None:
            waiting = (later.wait_ms - then.wait_ms) / passed_ms
        if then.slices is not None and later.slices is not None:
            slices = 1000 * (later.slices - then.slices) / passed_ms
        return Moved(now.pid, tid, (later.cpu_ms - then.cpu_ms) / passed_ms, waiting, slices)

    def _times(self, raw: bytes) -> SchedStat | None:
        text = raw.decode("utf-8", "surrogateescape")
        try:
            if self.has_waits or raw == b"0 0 0":
                return parse_schedstat(text)
            stat = parse_stat(text)
        except BadInput:
            return None
        return SchedStat((stat.user_ticks + stat.system_ticks) * 1000 / self._host.clock_ticks, None)

    def _read_switches(self, pid: int, tid: int) -> tuple[float, TaskSched] | None:
        found = optional(self._sched, pid, tid)
        if found is None:
            return None
        self._switches[tid] = self._host.monotonic(), found
        return self._switches[tid]

    def _sched(self, pid: int, tid: int) -> TaskSched:
        """Of `sched`, or of `status`, which has no migrations; the samples of a capture have `status` alone. Raises OSError where the thread has ended."""
        found = None if self._host.is_recorded else self._host.fs.maybe(parse_task_sched, pid, "task", tid, "sched")
        if found is not None:
            return found
        fields = self._host.fs.load(parse_status, pid, "task", tid, "status").fields
        voluntary, involuntary = (
            integer(fields.get(f"{kind}_ctxt_switches", "")) for kind in ("voluntary", "nonvoluntary")
        )
        return TaskSched(thread_name(self._host.fs, pid, tid) or "?", voluntary, involuntary, None, None)

    def _thread(self, moved: Moved, passed_s: float, before: tuple[float, TaskSched] | None) -> Thread | None:
        """The record of a thread that moved; None: it has ended since."""
        pid, tid = moved.pid, moved.tid
        running = min(moved.running, 1.0)
        waiting = None if moved.waiting is None else min(moved.waiting, 1.0 - running)
        is_busy = running + (waiting or 0.0) >= _BUSY
        after = self._read_switches(pid, tid) if before is not None or is_busy else None
        name = after[1].name if after else thread_name(self._host.fs, pid, tid)
        if name is None:
            return None
        rates = _rates(before, after)
        thread = Thread(tid, name, running, waiting, moved.slices, *rates)
        if after is not None and after[1].policy is not None:
            thread = thread._replace(policy=after[1].policy)
        return self._detailed(pid, thread, passed_s) if is_busy else thread

    def _detailed(self, pid: int, thread: Thread, passed_s: float) -> Thread:
        """With its CPUs and its priority; and with the wait that has not ended, which schedstat lacks."""
        fs, tid, waiting = self._host.fs, thread.tid, thread.waiting
        place = fs.maybe(parse_placement, pid, "task", tid, "stat")
        status = fs.maybe(parse_status, pid, "task", tid, "status")
        if status is not None:
            allowed = parse_cpu_list(status.fields.get("Cpus_allowed_list", "")) or frozenset()
            thread = thread._replace(allowed=allowed & self._online or allowed)  # it names CPUs too that may be added
        if place is None:
            return thread
        if waiting is not None and place.state == _RUNNABLE and thread.voluntary == 0 and thread.average_wait_s:
            # It never slept, so it waited whenever it did not run. The end of the last wait is not known.
            waiting = min(1.0 - thread.running, waiting + thread.average_wait_s / passed_s)
        return thread._replace(
            cpu=place.cpu, policy=place.policy, nice=place.nice, waiting=waiting, is_bound=place.is_bound
        )

    def _stuck(self, tid: int, now: Reading) -> Thread | None:
        """A thread that wants to run and did not all the time: schedstat counts a wait when it ends."""
        place = self._host.fs.maybe(parse_placement, now.pid, "task", tid, "stat")
        if place is None or place.state != _RUNNABLE:
            return None
        again = self._read(now.pid, tid)
        name = thread_name(self._host.fs, now.pid, tid)
        if again is None or again.raw != now.raw or name is None:
            return None
        return self._detailed(now.pid, Thread(tid, name, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0), 1.0)


def _counts_waits(host: Host, pid: object) -> bool:
    """Whether the kernel has schedstat, and fills it: without delay accounting some write zeros."""
    found = host.fs.maybe(parse_schedstat, pid, "schedstat")
    return found is not None and found.wait_ms is not None and found.cpu_ms > 0


def _rates(
    before: tuple[float, TaskSched] | None, after: tuple[float, TaskSched] | None
) -> tuple[float | None, float | None, float | None]:
    """Voluntary and involuntary switches and migrations a second."""
    if before is None or after is None:
        return None, None, None
    passed_s = max(after[0] - before[0], 1e-6)
    then, now = before[1], after[1]

    def rate(first: int | None, last: int | None) -> float | None:
        return None if first is None or last is None or last < first else (last - first) / passed_s

    return (
        rate(then.voluntary, now.voluntary), rate(then.involuntary, now.involuntary), rate(then.migrations, now.migrations),
    )  # fmt: skip
