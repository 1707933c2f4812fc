"""What each thread of a process has used of the CPUs (Documentation/scheduler/sched-stats.rst, fs/proc/array.c).

/proc/PID/task/TID/schedstat: `10385712 62103 31`, ns on a CPU, ns waiting for one, time slices. To the nanosecond, where
stat counts ticks of 10 ms; the kernel keeps it with CONFIG_SCHED_INFO, and stat serves where it does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import DENIED, GONE, ProcFS
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Iterable


def parse_schedstat(text: str) -> float:
    """CPU ms. Raises BadInput."""
    words = text.split(None, 1)
    used_ns = integer(words[0]) if words else None
    if used_ns is None:
        raise BadInput("schedstat", "not `cpu_ns wait_ns slices`", found=text)
    return used_ns / 1e6


class ThreadCpu:
    """Reads the threads' CPU again and again. Threads are named as their own pid namespace names them, as a JVM does."""

    def __init__(self, fs: ProcFS, pid: int, clock_ticks: int) -> None:
        self.fs, self.pid, self.clock_ticks = fs, pid, clock_ticks
        self._inner: dict[int, int] = {}
        self._nested = len(fs.load(parse_status, pid, "status").ns_pids) > 1

    def read(self) -> dict[int, float]:
        """CPU ms since its start, by inner thread id. Empty where the process is gone."""
        used = {}
        for tid in self._tids():
            try:
                used[self._inner_id(tid)] = self._used_ms(tid)
            except (*GONE, DENIED, BadInput):
                continue  # it ended meanwhile
        return used

    def names(self, wanted: Iterable[int]) -> dict[int, str]:
        """The threads' names, cut by the kernel to 15 bytes, by inner thread id."""
        missing = set(wanted)
        names = {}
        for tid in self._tids() if missing else ():
            try:
                inner = self._inner_id(tid)
                if inner in missing:
                    names[inner] = self.fs.load(str.rstrip, self.pid, "task", tid, "comm")
            except (*GONE, DENIED):
                continue
        return names

    def _tids(self) -> list[int]:
        try:
            return self.fs.tids(self.pid)
        except (*GONE, DENIED):
            return []

    def _used_ms(self, tid: int) -> float:
        try:
            return self.fs.load(parse_schedstat, self.pid, "task", tid, "schedstat")
        except (*GONE, BadInput):
            stat = self.fs.load(parse_stat, self.pid, "task", tid, "stat")
            return (stat.user_ticks + stat.system_ticks) * 1000 / self.clock_ticks

    def _inner_id(self, tid: int) -> int:
        if not self._nested:
            return tid
        if tid not in self._inner:
            self._inner[tid] = (self.fs.load(parse_status, self.pid, "task", tid, "status").ns_pids or (tid,))[-1]
        return self._inner[tid]
