"""Threads that may not use all CPUs, and irqbalance: one pass over the threads of the machine at the begin of a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.irqs.facts import Pinned
from opskit.proc.cpu_topology import read_cpuset
from opskit.proc.files.cpu_times import parse_cpu_list
from opskit.proc.files.schedstat import parse_schedstat
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import optional
from opskit.proc.irqbalance import NAME
from opskit.proc.kernel.affinity import allowed_cpus, takes_what_is_left
from opskit.proc.process import real_uid
from opskit.proc.thread_names import thread_name
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from opskit.host import Host
    from opskit.proc.files.schedstat import SchedStat
    from opskit.proc.process import Process

_LEAST_RUNNING = 0.005  # of a CPU: others are not listed
_MOST_PINNED = 200
_COMM = NAME.encode() + b"\n"


class _Thread(NamedTuple):
    pid: int
    tid: int
    allowed: frozenset[int]
    times: SchedStat


class ThreadScan:
    """What one pass has found. `balancers`: PIDs of processes of root with irqbalance's name."""

    def __init__(self, host: Host, usual: frozenset[int], pids: Collection[int] = ()) -> None:
        """Read the affinity of all threads. `usual`: the CPUs of a thread that nobody has pinned. `pids`: of these processes alone."""
        self._host, self._is_own = host, host.is_own
        self.balancers: list[int] = []
        ourselves = optional(host.fs.link, "self", default=b"")
        self._threads = [
            thread
            for pid in (pids or host.fs.pids())
            if b"%d" % pid != ourselves
            for thread in self._pinned_of(pid, usual)
        ]  # fmt: skip

    def _pinned_of(self, pid: int, usual: frozenset[int]) -> Iterator[_Thread]:
        """The threads of a process that may not use all of the usual CPUs; none of kernel threads."""
        fs = self._host.fs
        name = optional(fs.read, pid, "comm", default=b"")
        if name == _COMM and fs.maybe(real_uid, pid, "status") == 0:  # anybody may use the name
            self.balancers.append(pid)
        is_users: bool | None = None
        for tid in optional(fs.tids, pid, default=[]):
            allowed = self._allowed(pid, tid)
            if not allowed or allowed >= usual:
                continue
            if is_users is None:
                stat = fs.maybe(parse_stat, pid, "stat")
                is_users = stat is not None and not stat.is_kernel_thread
            if not is_users:
                return
            times = self._times(pid, tid)
            if times is not None:
                yield _Thread(pid, tid, allowed, times)

    def _allowed(self, pid: int, tid: int) -> frozenset[int] | None:
        if self._is_own:
            return optional(self._host.fs.calls.ask, allowed_cpus, tid)
        status = self._host.fs.maybe(parse_status, pid, "task", tid, "status")
        return None if status is None else parse_cpu_list(status.fields.get("Cpus_allowed_list", ""))

    def _times(self, pid: int, tid: int) -> SchedStat | None:
        return self._host.fs.maybe(parse_schedstat, pid, "task", tid, "schedstat")

    def end(self, elapsed_s: float, online: frozenset[int]) -> tuple[Pinned, ...]:
        """Those that ran since, the busiest first."""
        moved = []
        for thread in self._threads:
            times = self._times(thread.pid, thread.tid)
            if times is None or times.cpu_ms < thread.times.cpu_ms:  # it has ended, and another one has its number
                continue
            running = (times.cpu_ms - thread.times.cpu_ms) / 1000 / elapsed_s
            if running >= _LEAST_RUNNING:
                moved.append((min(running, 1.0), thread, times))
        moved.sort(key=lambda each: (-each[0], each[1].tid))
        return tuple(self._records(moved[:_MOST_PINNED], elapsed_s, online))

    def _records(
        self, moved: Sequence[tuple[float, _Thread, SchedStat]], elapsed_s: float, online: frozenset[int]
    ) -> Iterator[Pinned]:
        fs = self._host.fs
        processes: dict[int, tuple[Process, frozenset[int]]] = {}
        for running, (pid, tid, allowed, before), times in moved:
            if pid not in processes:
                processes[pid] = self._host.process(pid), read_cpuset(fs, pid, online)
            process, cpuset = processes[pid]
            name = thread_name(fs, pid, tid)
            if name is None or process.has_ended:
                continue
            waited = None
            if times.wait_ms is not None and before.wait_ms is not None:
                waited = min(max(0.0, (times.wait_ms - before.wait_ms) / 1000 / elapsed_s), 1.0)
            yields = self._is_own and bool(optional(fs.calls.ask, takes_what_is_left, tid))
            yield Pinned(process, tid, name, allowed, running, waited, cpuset, yields)
