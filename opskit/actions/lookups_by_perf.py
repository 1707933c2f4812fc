"""Failed lookups from perf events on the exit of system calls. The events end with the process that opened them.

Each CPU has one event, filtered to ENOENT of path calls. It records one in `period` lookups, and the period follows the
load: recording all would cost a busy CPU more than ftrace does. The CPU's count since the last read is spread over the
records of that read: the total is exact, the shares are a sample, and exact too where the period is 1.
"""

from __future__ import annotations

import mmap
import os
import platform
import struct
from bisect import bisect_left
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from opskit.actions.peek_paths import event_number, peek_by_perf
from opskit.errors import NotSupported
from opskit.proc.files.cpu_times import read_online_cpus
from opskit.proc.fs import optional
from opskit.proc.kernel import perf_event as perf
from opskit.proc.kernel.ftrace import CALLS, Failure, call_name, failed_lookups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.proc.fs import ProcFS
    from opskit.proc.kernel.ftrace import Seen

Key = tuple[bytes, int, int, int]  # comm, pid, tid, number of the call

_RECORDS = 2048  # of all CPUs per read, about: it bounds our own load
_LEAST_RECORDS = 64  # of one CPU
_FLOOD = 4  # so many times fewer records once a CPU has more than its share
_PERIODS = (1, 3, 7, 13, 31, 61, 127, 251, 509, 1021)  # primes: samples of a loop hit each of its lookups
_RECORD_BYTES = 48
_OFTEN = ("newfstatat", "openat", "stat", "access", "statx", "readlink", "lstat", "open", "faccessat2", "faccessat")
_SAMPLE = struct.Struct("=ii4x8xqq")  # pid, tid, size and common fields, id, ret
_COMM = struct.Struct("=II")  # pid, tid, then the comm
_FORK = struct.Struct("=IIII")  # pid, ppid, tid, ptid
_EVENT = "raw_syscalls/sys_exit"


class _Cpu:
    """The event of one CPU. `weights`: the lookups of each key."""

    def __init__(self, cpu: int, event_id: int, rule: str, most_records: int) -> None:
        self._most_records = most_records
        self._period = 0
        attr = perf.Attr(
            perf.TRACEPOINT, event_id, _PERIODS[0], perf.TID | perf.RAW,
            flags=perf.DISABLED | perf.WATERMARK | perf.COMM | perf.TASK, wakeup=perf.NEVER_WAKE,
        )  # fmt: skip
        self.fd = perf.open_event(attr, -1, cpu)
        try:
            perf.set_filter(self.fd, rule)
            pages = 2 * most_records * _RECORD_BYTES // mmap.PAGESIZE
            self.ring = perf.Ring(self.fd, 1 << pages.bit_length())
        except BaseException:
            os.close(self.fd)
            raise
        self.total = self.read_records = 0
        self.weights: dict[Key, float] = defaultdict(float)
        self._unread = 0  # lookups that were counted but not yet spread over records

    def weigh(self, found: Counter[Key], *, lost: bool) -> None:
        """Spread the count since the last read over the records of this one; then set the next period."""
        before, self.total = self.total, perf.count(self.fd)
        self._unread += self.total - before
        records = sum(found.values())
        self.read_records += records
        if records:
            exact = self._period == 0 and not lost
            weight = 1.0 if exact else max(self._unread, records) / records
            self._unread -= round(weight * records)
            for key, count in found.items():
                self.weights[key] += weight * count
        happened = self.total - before
        # Each record slows down the traced process: where not all are recorded, few are enough.
        wanted = 1 if happened <= self._most_records else _FLOOD * happened / self._most_records
        index = min(bisect_left(_PERIODS, wanted), len(_PERIODS) - 1)
        if index != self._period:
            self._period = index
            perf.set_period(self.fd, _PERIODS[index])

    def settle(self) -> None:
        """Spread what was counted after the last records in proportion to all of them."""
        known = sum(self.weights.values())
        if self._unread > 0 and known:
            self.weights = {key: weight * (known + self._unread) / known for key, weight in self.weights.items()}


class PerfSource:
    """Perf events on every CPU, with the methods of InstanceSource."""

    events = "perf"

    def __init__(self, tracing: str, fs: ProcFS, without: tuple[int, ...]) -> None:
        """`without`: PIDs to leave out. Raises OSError, NotSupported where another source is needed."""
        if not CALLS:
            raise NotSupported(f"the numbers of the system calls of {platform.machine()} are unknown")
        self._tracing, self._fs = tracing, fs
        self._comms: dict[int, bytes] = {}
        self._ended: list[int] = []
        event_id, rule, cpus = event_number(tracing, _EVENT), _rule(without), read_online_cpus(fs)
        most = max(_RECORDS // len(cpus), _LEAST_RECORDS)
        self._cpus: list[_Cpu] = []
        try:
            for cpu in cpus:
                self._cpus.append(_Cpu(cpu, event_id, rule, most))
            for one in self._cpus:
                perf.control(one.fd, perf.ENABLE)
        except BaseException:
            self.close()
            raise

    def read(self) -> Seen:
        """Read the waiting records; the threads in them."""
        for tid in self._ended:  # all their records have been read
            self._comms.pop(tid, None)
        self._ended = []
        fresh: Seen = set()
        for cpu in self._cpus:
            found: Counter[Key] = Counter()
            lost = False
            for kind, _, body in perf.records(cpu.ring.read()):
                if kind == perf.RECORD_SAMPLE:
                    pid, tid, number, _ = _SAMPLE.unpack_from(body)
                    comm = self._comms.get(tid)
                    found[self._comm_of(pid, tid) if comm is None else comm, pid, tid, number] += 1
                elif kind == perf.RECORD_LOST:
                    lost = True
                else:
                    self._note(kind, body)
            cpu.weigh(found, lost=lost)
            fresh.update((comm, tid, pid if pid > 0 else None) for comm, pid, tid, _ in found)
        return fresh

    def _note(self, kind: int, body: memoryview) -> None:
        """Keep the name of a thread, which may end before it is looked up."""
        if kind == perf.RECORD_COMM:
            _, tid = _COMM.unpack_from(body)
            self._comms[tid] = bytes(body[_COMM.size :]).partition(b"\0")[0]
        elif kind == perf.RECORD_FORK:
            _, ppid, tid, ptid = _FORK.unpack_from(body)
            self._comms[tid] = self._comm_of(ppid, ptid)
        elif kind == perf.RECORD_EXIT:
            self._ended.append(_FORK.unpack_from(body)[2])

    def _comm_of(self, pid: int, tid: int) -> bytes:
        if tid not in self._comms:
            comm = optional(self._fs.read, tid, "comm") or optional(self._fs.read, pid, "comm", default=b"?")
            self._comms[tid] = comm.removesuffix(b"\n")
        return self._comms[tid]

    def finish(self) -> Seen:
        """Stop recording and read once more; as `read`."""
        for cpu in self._cpus:
            perf.control(cpu.fd, perf.DISABLE)
        fresh = self.read()
        for cpu in self._cpus:
            cpu.settle()
        return fresh

    def failures(self) -> Iterator[tuple[Failure, float]]:
        """Each kind of event and its (estimated) number."""
        for cpu in self._cpus:
            for (comm, pid, tid, number), weight in cpu.weights.items():
                yield Failure(comm, tid, call_name(number), pid if pid > 0 else None), weight

    def counted(self) -> tuple[int, int]:
        """(the kernel's count of events, the number that was read)."""
        read = sum(cpu.read_records for cpu in self._cpus)
        return max(sum(cpu.total for cpu in self._cpus), read), read

    def paths(self, call: str, tid: int, clock: Callable[[], float]) -> list[str]:
        """Examples of the paths that a thread passes to a system call."""
        return peek_by_perf(self._tracing, call, tid, clock)

    def close(self) -> None:
        """Close the events, which ends them."""
        while self._cpus:
            cpu = self._cpus.pop()
            cpu.ring.close()
            os.close(cpu.fd)


def _rule(without: tuple[int, ...]) -> str:
    """The filter, with the most frequent calls first: the kernel evaluates it at every system call."""
    often = {name: place for place, name in enumerate(_OFTEN)}
    return failed_lookups(without, sorted(CALLS, key=lambda number: often.get(CALLS[number], len(often))))
