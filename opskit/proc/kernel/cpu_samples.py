"""Samples of what a process runs on the CPUs, by perf_event_open(2): registers, a copy of the stack, the kernel's frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Sample(NamedTuple):
    """One sample of a thread.

    `registers`: of user mode, by DWARF number (proc/unwind/cursor.py), None where not sampled; empty where no user code ran.
    `kernel`: the kernel's program counters, leaf first; empty in user mode or without the right to see them.
    `stack`: the bytes from the stack pointer up. `time_ns`: CLOCK_MONOTONIC.
    """

    tid: int
    time_ns: int
    in_kernel: bool
    kernel: Sequence[int]
    registers: Sequence[int | None]
    stack: bytes
