"""Read the kernel's clocks against each other, and measure what a read costs."""

from __future__ import annotations

import gc
import os
import time
from itertools import repeat
from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_BRACKETS = 5
_CALLS, _BATCHES = 100, 30  # the fastest of 30 batches of 10 us: an interrupt spoils few of them


class ClockPair(NamedTuple):
    """CLOCK_REALTIME minus CLOCK_BOOTTIME, right within `width_ns`; and MONOTONIC minus MONOTONIC_RAW.

    The first changes only when the clock is set: both follow the same rate, and both go on in suspend. The second changes
    with the correction of the rate.
    """

    at_s: float  # CLOCK_MONOTONIC
    real_ns: int
    corrected_ns: int
    width_ns: int


class ReadCost(NamedTuple):
    """Nanoseconds of clock_gettime(CLOCK_REALTIME) and of getppid(2), which is always a system call."""

    read_ns: float
    syscall_ns: float


def read_pair() -> ClockPair:
    """Read each clock between two reads of another one; the narrowest of five brackets."""
    real, real_width = _against(time.CLOCK_REALTIME, time.CLOCK_BOOTTIME)
    corrected, _ = _against(time.CLOCK_MONOTONIC, time.CLOCK_MONOTONIC_RAW)
    return ClockPair(time.monotonic(), real, corrected, real_width)


def _against(clock: int, base: int) -> tuple[int, int]:
    read = time.clock_gettime_ns
    found = []
    for _ in range(_BRACKETS):
        before, value, after = read(base), read(clock), read(base)
        found.append((after - before, value - (before + after) // 2))
    width, difference = min(found)
    return difference, width


def read_cost() -> ReadCost:
    """Measure it, with the cost of the calls from Python taken off. It takes 2 ms of CPU."""
    empty = _fastest(gc.isenabled)
    return ReadCost(
        max(round(_fastest(time.time_ns) - empty, 1), 0.0), max(round(_fastest(os.getppid) - empty, 1), 0.1)
    )


def _fastest(call: Callable[[], object]) -> float:
    """Nanoseconds of a call."""
    clock = time.perf_counter_ns
    best = 1 << 62
    for _ in range(_BATCHES):
        begun = clock()
        for _ in repeat(None, _CALLS):
            call()
        best = min(best, clock() - begun)
    return best / _CALLS
