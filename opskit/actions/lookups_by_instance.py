"""Failed lookups from a tracing instance, for where perf_event_open is refused.

An instance stays enabled until it is removed. Its name identifies the process that made it (`leftovers`).
"""

from __future__ import annotations

import errno
import os
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from opskit.actions import leftovers
from opskit.actions.peek_paths import peek_by_instance, write_control
from opskit.errors import NotPermitted, NotSupported
from opskit.proc.fs import READ_ONLY
from opskit.proc.kernel import ftrace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.proc.kernel.ftrace import Failure, Seen

_PREFIX = leftovers.PREFIX.lstrip(".")  # visible in a listing
_BUFFER_KB = 256  # a CPU
_READ_BYTES, _READ_BYTES_OF_A_CPU = 1 << 17, 1 << 13  # of text per read: they bound our own load
_BUSY_PAUSE_S = 0.05


class InstanceSource:
    """An instance with the events of failed path lookups. `events`: the event group that this kernel has."""

    def __init__(self, tracing: str, wanted: tuple[str, ...], without: tuple[int, ...]) -> None:
        """`without`: PIDs to leave out. Raises NotPermitted, NotSupported, OSError."""
        self._instance = f"{tracing}/instances/{leftovers.new_name().lstrip('.')}"
        self._pipes: list[int] = []
        try:
            os.mkdir(self._instance)
        except OSError as error:
            raise NotPermitted(f"cannot make a tracing instance: {error.strerror}") from None
        try:
            self._cpus = sorted(os.listdir(f"{self._instance}/per_cpu"), key=lambda name: (len(name), name))
            write_control(f"{self._instance}/buffer_size_kb", str(_BUFFER_KB))
            self.events = self._enable(wanted, without)
            paths = [f"{self._instance}/per_cpu/{cpu}/trace_pipe" for cpu in self._cpus]
            self._pipes = [os.open(path, READ_ONLY) for path in paths]
        except BaseException:
            self.close()
            raise
        self._rests = [b""] * len(self._pipes)
        self._counts: list[Counter[tuple[bytes, bytes, bytes, bytes]]] = [Counter() for _ in self._pipes]
        self._totals: list[int] = []

    def _enable(self, wanted: tuple[str, ...], without: tuple[int, ...]) -> str:
        """Enable the first wanted group that this kernel has; its name."""
        for events in wanted:
            raw = events == "raw_syscalls"
            names = ["sys_exit"] if raw else [f"sys_exit_{call}" for call in ftrace.PATH_CALLS]
            found = [one for name in names if os.path.isdir(one := f"{self._instance}/events/{events}/{name}")]
            for event in found:
                write_control(f"{event}/filter", ftrace.failed_lookups(without, ftrace.CALLS if raw else ()))
                write_control(f"{event}/enable", "1")
            if found:
                return events
        raise NotSupported(
            "this kernel cannot trace system calls (CONFIG_FTRACE_SYSCALLS): the processes that look up absent files "
            "cannot be named here"
        )

    def read(self) -> Seen:
        """Read the waiting events up to a budget; the threads in them."""
        budget = max(_READ_BYTES // len(self._pipes), _READ_BYTES_OF_A_CPU)
        fresh: Seen = set()
        for index, pipe in enumerate(self._pipes):
            text = self._rests[index] + b"".join(_available(pipe, budget))
            whole, newline, rest = text.rpartition(b"\n")
            self._rests[index] = rest
            if newline:
                found = Counter(ftrace.parse_failures(whole))
                self._counts[index].update(found)
                fresh.update((event.comm, event.tid, None) for event in map(ftrace.named, found))
        return fresh

    def finish(self) -> Seen:
        """Stop recording and read once more; as `read`."""
        write_control(f"{self._instance}/tracing_on", "0")
        fresh = self.read()
        self._close_pipes()
        for cpu in self._cpus:
            with open(f"{self._instance}/per_cpu/{cpu}/stats", encoding="ascii") as stats:
                self._totals.append(ftrace.parse_buffer_stats(stats.read()))
        return fresh

    def failures(self) -> Iterator[tuple[Failure, float]]:
        """Each kind of event and its number, scaled from what was read of a CPU to what the CPU counted."""
        for counts, total in zip(self._counts, self._totals):
            read = sum(counts.values())
            for event, count in counts.items():
                yield ftrace.named(event), count * max(total, read) / read

    def counted(self) -> tuple[int, int]:
        """(the kernel's count of events, the number that was read)."""
        read = sum(sum(counts.values()) for counts in self._counts)
        return max(sum(self._totals), read), read

    def paths(self, call: str, tid: int, clock: Callable[[], float]) -> list[str]:
        """Examples of the paths that a thread passes to a system call. Only after `finish`."""
        if self.events != "syscalls":
            return []
        events = f"{self._instance}/events/syscalls"
        for one in ftrace.PATH_CALLS:
            if os.path.isdir(f"{events}/sys_exit_{one}"):
                write_control(f"{events}/sys_exit_{one}/enable", "0")
        write_control(f"{self._instance}/tracing_on", "1")
        return peek_by_instance(self._instance, call, tid, clock)

    def _close_pipes(self) -> None:
        while self._pipes:
            os.close(self._pipes.pop())

    def close(self) -> None:
        """Remove the instance."""
        self._close_pipes()
        _remove(self._instance)


def remove_stale(tracing: str, killed: int | None = None) -> None:
    """Remove the instances of runs that were killed, and those of the PID `killed`."""
    for name in os.listdir(f"{tracing}/instances"):
        if name.startswith(f"{_PREFIX}{killed}-") or (name.startswith(_PREFIX) and leftovers.is_abandoned(name)):
            _remove(f"{tracing}/instances/{name}")


def _remove(instance: str) -> None:
    """Stop an instance and remove it; the kernel answers EBUSY until the last reader has left."""
    with suppress(OSError):
        write_control(f"{instance}/tracing_on", "0")
    for _ in range(100):
        try:
            os.rmdir(instance)
        except OSError as error:
            if error.errno == errno.EBUSY:
                time.sleep(_BUSY_PAUSE_S)
                continue
            if error.errno != errno.ENOENT:
                raise
        return


def _available(pipe: int, budget: int) -> Iterator[bytes]:
    with suppress(BlockingIOError):
        while budget > 0 and (chunk := os.read(pipe, min(budget, 1 << 16))):
            budget -= len(chunk)
            yield chunk
