"""How long an exchange with a JVM may take, and what the JVM's threads did meanwhile."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING, NoReturn

from opskit import shell
from opskit.errors import AttachError
from opskit.jvm.attach.descriptors import shortage
from opskit.jvm.attach.target import AttachTarget, check_same
from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import ProcFS, optional
from opskit.quantities import percent

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_BUSY_SHARE = 0.05  # on a crowded machine the thread that blocks all others may get no more
_GC_THREADS = ("GC Thread", "G1 ", "ZWorker", "ZDriver", "ZWorkerYoung", "ZWorkerOld", "Shenandoah", "ParGC")


class RanOutError(Exception):
    """The deadline has passed; the text names what did not come."""


class Deadline:
    """The end of one exchange. Half-way it records the threads' CPU times, to name the busiest one after a timeout."""

    def __init__(self, fs: ProcFS, target: AttachTarget, seconds: float) -> None:
        self.fs, self.target, self.seconds = fs, target, seconds
        self._begun = time.monotonic()
        self._before: dict[int, tuple[str, int]] | None = None
        self._before_at = 0.0

    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._begun

    def is_half_spent(self) -> bool:
        """Whether half of the time has passed."""
        return self.spent() >= self.seconds / 2

    def pause(self, seconds: float, waited_for: str) -> None:
        """Sleep. Raises RanOutError."""
        time.sleep(min(seconds, self._left(waited_for)))

    def wait(self, connection: socket.socket, event: int, waited_for: str) -> None:
        """Wait until the connection can go on. Raises RanOutError."""
        poll = select.poll()
        poll.register(connection, event)
        while not poll.poll(self._left(waited_for) * 1000):
            continue

    def _left(self, waited_for: str) -> float:
        """Seconds to wait now, at most."""
        if self._before is None and self.is_half_spent():
            self._look()
        left = self.seconds - self.spent()
        if left <= 0:
            raise RanOutError(waited_for)
        return left if self._before is not None else max(0.0, min(left, self.seconds / 2 - self.spent()))

    def _look(self) -> None:
        self._before_at = time.monotonic()
        self._before = thread_times(self.fs, self.target.pid)

    def explain(self, waited_for: str) -> NoReturn:
        """Raise AttachError (timeout) with what the JVM did; (stopped, no-fds) or NoSuchProcess where that is the cause."""
        check_same(self.fs, self.target)
        lacking = shortage(self.fs, self.target.pid, listens=True)
        if lacking is not None:
            raise AttachError("no-fds", self.target.who, what=lacking.sentence)
        if self._before is None:
            self._look()
            time.sleep(0.1)
        after = thread_times(self.fs, self.target.pid)
        found = busiest(self._before or {}, after, (time.monotonic() - self._before_at) * CLOCK_TICKS)
        raise AttachError(
            "timeout", self.target.who, waited_for=waited_for, seconds=self.seconds,
            meanwhile=meanwhile(found), thread=None if found is None else found[1],
        )  # fmt: skip


def thread_times(fs: ProcFS, pid: int) -> dict[int, tuple[str, int]]:
    """By TID: (comm, CPU ticks) of every thread; empty where the process has ended."""
    tids = optional(fs.tids, pid, default=[])
    stats = [(tid, fs.maybe(parse_stat, pid, "task", tid, "stat")) for tid in tids]
    return {tid: (stat.comm, stat.user_ticks + stat.system_ticks) for tid, stat in stats if stat is not None}


def busiest(
    before: Mapping[int, tuple[str, int]], after: Mapping[int, tuple[str, int]], elapsed_ticks: float
) -> tuple[int, str, float] | None:
    """(TID, comm, share of one CPU) of the thread that used most CPU in between; None where it used under 5 %."""
    used = [(ticks - before.get(tid, (comm, 0))[1], tid, comm) for tid, (comm, ticks) in after.items()]
    if not used or elapsed_ticks <= 0:
        return None
    ticks, tid, comm = max(used)
    share = ticks / elapsed_ticks
    return (tid, comm, min(share, 1.0)) if share >= _BUSY_SHARE else None


def meanwhile(found: tuple[int, str, float] | None) -> str:
    """What a JVM that did not answer was doing, and what to do about it."""
    if found is None:
        return (
            "none of its threads used much CPU meanwhile: it may be waiting for memory, disk or CPU time "
            "(opskit jvms shows CPU throttling); try a longer --timeout"
        )
    tid, comm, share = found
    used = f'thread "{comm}" (tid {tid}) used {percent(share)} of a CPU meanwhile'
    if comm.startswith(_GC_THREADS):
        return f"{used}: the JVM is busy with garbage collection"
    if comm == "VM Thread":
        return f"{used}: the JVM is inside a long VM operation"
    return (
        f"{used}: if that is a loop without a safepoint poll, the JVM cannot answer until it ends; "
        f"{shell.command('perf', 'record', '-g', '-t', tid)} shows where it is"
    )
