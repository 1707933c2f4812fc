"""CPU time and run queue waits of each thread of a process, by the thread ids of its own pid namespace (those that a JVM prints)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.files.schedstat import SchedStat, parse_schedstat
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import DENIED, GONE, ProcFS, optional
from opskit.proc.thread_names import thread_name
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class ThreadTimes(NamedTuple):
    """Since the start of each thread, in ms: on a CPU, and waiting for one (only where the kernel counts that)."""

    used_ms: dict[int, float]
    waited_ms: dict[int, float]


class ThreadCpu:
    """Reads the times of all threads repeatedly: ns from schedstat, 10 ms ticks from stat without it."""

    def __init__(self, fs: ProcFS, pid: int, clock_ticks: int) -> None:
        self.fs, self.pid, self.clock_ticks = fs, pid, clock_ticks
        self._inner: dict[int, int] = {}
        status = fs.maybe(parse_status, pid, "status")
        self._nested = status is not None and len(status.ns_pids) > 1

    def read(self) -> ThreadTimes:
        """The times of all threads; empty if the process has ended."""
        times = ThreadTimes({}, {})
        for tid in self._tids():
            try:
                inner, found = self.inner_id(tid), self._schedstat(tid)
            except (*GONE, DENIED, BadInput):
                continue  # the thread ended meanwhile
            times.used_ms[inner] = found.cpu_ms
            if found.wait_ms is not None:
                times.waited_ms[inner] = found.wait_ms
        return times

    def names(self, wanted: Iterable[int]) -> dict[int, str]:
        """The names of these threads, cut to 15 bytes by the kernel."""
        missing = set(wanted)
        inner = {tid: optional(self.inner_id, tid) for tid in (self._tids() if missing else ())}
        names = {one: thread_name(self.fs, self.pid, tid) for tid, one in inner.items() if one in missing}
        return {one: name for one, name in names.items() if one is not None and name is not None}

    def _tids(self) -> list[int]:
        return optional(self.fs.tids, self.pid, default=[])

    def _schedstat(self, tid: int) -> SchedStat:
        try:
            return self.fs.load(parse_schedstat, self.pid, "task", tid, "schedstat")
        except (*GONE, BadInput):
            stat = self.fs.load(parse_stat, self.pid, "task", tid, "stat")
            return SchedStat((stat.user_ticks + stat.system_ticks) * 1000 / self.clock_ticks, None)

    def inner_id(self, tid: int) -> int:
        """The TID as the process sees it. Raises OSError where the thread has ended, BadInput."""
        if not self._nested:
            return tid
        if tid not in self._inner:
            self._inner[tid] = (self.fs.load(parse_status, self.pid, "task", tid, "status").ns_pids or (tid,))[-1]
        return self._inner[tid]
