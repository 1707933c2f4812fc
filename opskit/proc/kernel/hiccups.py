"""A hiccup meter: loops that run in a child process on one CPU, and see when that CPU did something else.

`sleep`: a thread that wants to be woken up each millisecond, and notes how late it is. `spin`: a thread that reads the clock without a pause, and
notes each gap between two readings.
"""

from __future__ import annotations

import ctypes
import time
from heapq import heappush, heappushpop
from itertools import repeat
from typing import TYPE_CHECKING, Any

from opskit.proc.kernel.children import Stopped

if TYPE_CHECKING:
    from opskit.proc.kernel.children import Send

PERIOD_NS, _LONGEST_PERIOD_NS = 1_000_000, 4_000_000
_COSTLY, _TRIED_NS = 0.04, 250_000_000  # of a CPU; after so long it is known what a wake-up costs on this machine
GAP_NS = 5_000  # what Python itself takes between two readings, and a gap that is none, are below it
STALL_NS = 300_000
MOST_STALLS = 100
_PR_SET_TIMERSLACK = 29
_LOOPS = 2_000
_DIGITS = 3

_libc = ctypes.CDLL(None)


class _Notes:
    """What a meter has seen: how often each lateness in ns, rounded to three digits; the longest stalls and when they ended."""

    __slots__ = ("above", "counted", "longest", "stalled_ns")

    def __init__(self) -> None:
        self.counted: dict[int, int] = {}
        self.longest: list[tuple[int, int]] = []
        self.stalled_ns = self.above = 0

    def stall(self, late_ns: int, at_ns: int) -> None:
        self.above += 1
        if len(self.longest) < MOST_STALLS:
            heappush(self.longest, (late_ns, at_ns))
        else:
            heappushpop(self.longest, (late_ns, at_ns))


def measure(seconds: float, spin: bool, send: Send) -> None:
    """Measure for so long, or until SIGTERM; send what was seen, the monotonic times in ns, and the CPU time that it took."""
    _libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)  # the 50 us of the default would be a part of what is measured
    notes = _Notes()
    begun_ns = time.monotonic_ns()
    before_s = time.process_time()
    try:
        (_spin if spin else _sleep)(begun_ns + round(seconds * 1e9), notes)
    except Stopped:
        pass
    send(_said(notes, begun_ns, time.monotonic_ns(), time.process_time() - before_s))


def _said(notes: _Notes, begun_ns: int, ended_ns: int, cpu_s: float) -> dict[str, Any]:
    return {
        "counted": [*sorted(notes.counted.items())], "stalls": sorted(notes.longest, reverse=True), "above": notes.above,
        "stalled_ns": notes.stalled_ns, "begun_ns": begun_ns, "ended_ns": ended_ns, "cpu_s": cpu_s,
    }  # fmt: skip


def _sleep(end_ns: int, notes: _Notes) -> None:
    """Wake up each millisecond; where that costs too much, half as often. After a stall the wake-ups that it has prevented count too, each as late as it was."""
    now, sleep, counted = time.monotonic_ns, time.sleep, notes.counted
    period = PERIOD_NS
    due = now() + period
    check, spent_s = due + _TRIED_NS, time.thread_time()
    while due < end_ns:
        if due >= check:
            before_s, spent_s = spent_s, time.thread_time()
            if spent_s - before_s > _COSTLY * _TRIED_NS / 1e9 and period < _LONGEST_PERIOD_NS:
                period *= 2
            check = due + _TRIED_NS
        left = due - now()
        if left > 0:
            sleep(left / 1e9)
        at = now()
        late = at - due
        key = rounded(late)
        counted[key] = counted.get(key, 0) + 1
        due += period
        if late >= STALL_NS:
            notes.stall(late, at)
            while due <= at:
                key = rounded(at - due)
                counted[key] = counted.get(key, 0) + 1
                due += period


def _spin(end_ns: int, notes: _Notes) -> None:
    """Read the clock again and again."""
    now, counted = time.monotonic_ns, notes.counted
    last = now()
    while last < end_ns:
        for _ in repeat(None, _LOOPS):
            at = now()
            if at - last >= GAP_NS:
                gap = at - last
                notes.stalled_ns += gap
                key = rounded(gap)
                counted[key] = counted.get(key, 0) + 1
                notes.stall(gap, at)
                at = now()
            last = at


def rounded(ns: int) -> int:
    """The lowest number with the same three digits and as many zeros."""
    zeros = len(str(ns)) - _DIGITS
    return ns if zeros <= 0 else ns // 10**zeros * 10**zeros
