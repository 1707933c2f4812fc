"""What a system call and a process switch cost: loops that run in child processes and keep a CPU busy for a fraction of a second.

A byte goes by pipe to another process and back. The same calls on a pipe to itself are subtracted, and the rest is divided by the switches
that the kernel has counted in both processes (getrusage(2), ru_nvcsw and ru_nivcsw). The shortest of many batches is what load disturbs least.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import time
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.proc.kernel.children import Send

_BATCHES, _TRIPS = 900, 100
_CALL_BATCHES, _CALLS = 300, 1000
_CPU_S, _WALL_S = 0.22, 1.5  # of one process, for a figure
_BATCH_NS = 2_000_000  # with a large working set a batch has fewer round trips

_libc = ctypes.CDLL(None)


class Wires(NamedTuple):
    """The fds of two pipes: `there` and `back`, the read end of each first."""

    there: tuple[int, int]
    back: tuple[int, int]

    @classmethod
    def make(cls) -> Wires:
        """Two pipes."""
        return cls(os.pipe(), os.pipe())

    def close(self) -> None:
        """Close all four ends."""
        for number in (*self.there, *self.back):
            os.close(number)


def time_calls(send: Send) -> None:
    """Send how long getppid(2) takes: `ns`, the shortest of the batches, and `median_ns`.

    The calls are made by lfind(3), with getppid as its comparison that never finds anything: a loop in C.
    """
    find, count = _libc.lfind, ctypes.c_size_t(_CALLS)
    find.restype = ctypes.c_void_p
    compare = ctypes.cast(_libc.getppid, ctypes.c_void_p)
    arguments = None, None, ctypes.byref(count), ctypes.c_size_t(0), compare
    now, batches = time.perf_counter_ns, []
    for _ in repeat(None, _CALL_BATCHES):
        begun = now()
        find(*arguments)
        batches.append((now() - begun) / _CALLS)
    least, median = _least_and_median(batches)
    send({"ns": least, "median_ns": median, "cpu_s": time.process_time()})


def answer(wires: Wires, working_set_bytes: int, send: Send) -> None:
    """Send back each byte that comes, until the other process ends; then send the `switches` and `cpu_s` of this one."""
    touch = _toucher(working_set_bytes)
    reading, writing = wires.there[0], wires.back[1]
    read, write = os.read, os.write
    begun, before = time.process_time(), _switches()
    if touch:
        while read(reading, 1):
            touch()
            write(writing, b"x")
    else:
        while read(reading, 1):
            write(writing, b"x")
    send({"switches": _switches() - before, "cpu_s": time.process_time() - begun})


def ask(wires: Wires, working_set_bytes: int, send: Send) -> None:
    """Send bytes to the other process and wait for each; then send the times of a round trip and of the same calls alone, in ns."""
    touch = _toucher(working_set_bytes)
    alone, trips, switches = os.pipe(), _TRIPS, 0
    mine: list[float] = []
    theirs: list[float] = []
    begun, began = time.process_time(), time.monotonic()
    if touch:
        once = _batch(alone[1], alone[0], 1, touch)
        trips = max(1, min(_TRIPS, round(_BATCH_NS / max(once, 1))))
    # The first batch pays for what is used for the first time.
    for number in range(_BATCHES + 1):
        own = _batch(alone[1], alone[0], trips, touch)
        before = _switches()
        trip = _batch(wires.there[1], wires.back[0], trips, touch)
        switches += _switches() - before
        if number:
            mine.append(own)
            theirs.append(trip)
        if number and (time.process_time() - begun > _CPU_S or time.monotonic() - began > _WALL_S):
            break
    # Without a write end the other process reads the end, and sends its counts.
    os.close(wires.there[1])
    send({
        "trip_ns": _least_and_median(theirs), "own_ns": _least_and_median(mine), "round_trips": (len(mine) + 1) * trips,
        "switches": switches, "cpu_s": time.process_time() - begun,
    })  # fmt: skip


def _batch(writing: int, reading: int, trips: int, touch: Callable[[], Any] | None) -> float:
    """The time of one round trip in ns, of so many."""
    read, write, times = os.read, os.write, repeat(None, trips)
    if touch is None:
        begun = time.perf_counter_ns()
        for _ in times:
            write(writing, b"x")
            read(reading, 1)
    else:
        begun = time.perf_counter_ns()
        for _ in times:
            touch()
            write(writing, b"x")
            read(reading, 1)
    return (time.perf_counter_ns() - begun) / trips


def _toucher(size: int) -> Callable[[], Any] | None:
    """A function that overwrites so many bytes of this process's own memory, which are in use already; None for no bytes."""
    if not size:
        return None
    memory = ctypes.c_char.from_buffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    touch = partial(ctypes.memset, ctypes.byref(memory), 2, size)
    touch()
    return touch


def _switches() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_nvcsw + used.ru_nivcsw


def _least_and_median(values: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return ordered[0], ordered[len(ordered) // 2]
