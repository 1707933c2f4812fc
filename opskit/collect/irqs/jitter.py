"""Measure how late a thread is woken up on each CPU, or how long it is interrupted there: one child process a CPU, all at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from opskit.collect.irqs.real_time import RealTimeScan
from opskit.errors import NotSupported, UsageError
from opskit.interrupts import Guard, Interruptible
from opskit.proc.cpu_topology import read_cpuset, read_topology
from opskit.proc.fs import ProcFS
from opskit.proc.kernel import hiccups
from opskit.proc.kernel.children import pin, start_child, wait_for
from opskit.quantities import number_list, number_ranges
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from datetime import datetime

    from opskit.collect.irqs.real_time import RealTime
    from opskit.host import Host
    from opskit.proc.kernel.children import Child, Send

DEFAULT_WINDOW_S = 10.0
_MOST_CPUS = 1 << 13
_LATE_S = 10.0  # a child on a CPU that is overloaded ends later than it should
_STOP_S = 2.0
HOGS = 0.9  # of a CPU, by a real-time thread: what else is there cannot run


class Request(NamedTuple):
    """What to measure: `cpus` (None: those of our cpuset) for `window_s`; `spin`: without sleeping."""

    cpus: frozenset[int] | None = None
    window_s: float = DEFAULT_WINDOW_S
    spin: bool = False


class Stall(NamedTuple):
    """A time without this CPU: how long, and when it ended, in seconds since the measurement began."""

    lasted_s: float
    at_s: float


class Meter(NamedTuple):
    """What was seen on one CPU. `late_ns`: how often each lateness (spin: each gap), rounded to three digits.

    `stalls`: the longest ones, of `stall_count` from 300 us on (spin: from 5 us). `stalled_s`: the gaps together (spin). `cpu_s`: what measuring took.
    """

    cpu: int
    elapsed_s: float
    cpu_s: float
    late_ns: Mapping[int, int]
    stalls: tuple[Stall, ...]
    stall_count: int
    stalled_s: float | None = None


class Facts(NamedTuple):
    """One measurement. `began`: by the clock of the machine. `failed`: CPUs that could not be measured, and why. `interrupted`: ended early.

    `real_time`: threads that the scheduler prefers to the meters, the busiest first.
    """

    ask: Request
    began: datetime
    meters: tuple[Meter, ...]
    failed: tuple[tuple[int, str], ...] = ()
    interrupted: bool = False
    isolated: frozenset[int] = frozenset()
    real_time: tuple[RealTime, ...] = ()


def parse_cpus(text: str) -> frozenset[int]:
    """The CPUs of `3` or `0-3,8`. Raises UsageError."""
    found = number_list(text, _MOST_CPUS)
    if not found:
        raise UsageError(f"--jitter {text}: not a CPU; write a number or a list: --jitter 0-3,8")
    return found


def collect(host: Host, ask: Request, expect: Callable[[str], None] | None = None) -> Facts:
    """Measure. `expect` is told what is done. Ctrl-C ends it early, with what was seen so far. Raises UsageError for a CPU that we may not use."""
    host.prove_moving("--jitter")
    host.prove_here("--jitter")
    fs = ProcFS()  # what is measured is this machine
    topology = read_topology(fs)
    ours = read_cpuset(fs, "self", frozenset(topology.online))
    cpus = ours if ask.cpus is None else ask.cpus
    if not cpus <= ours:
        lacking = number_ranges(cpus - ours)
        raise UsageError(f"--jitter: CPU {lacking} is not online or not in our cpuset, which has {number_ranges(ours)}")
    if expect:
        how = "spin on" if ask.spin else "measure"
        expect(f"{how} CPU {number_ranges(cpus)} for {ask.window_s:g} s; Ctrl-C shows what there is so far")
    threads = RealTimeScan(host)
    began, begun_s = host.now(), host.monotonic()
    said, failed, interrupted = _measure(sorted(cpus), ask)
    real_time = threads.end(max(host.monotonic() - begun_s, 1e-6))
    if not (said or interrupted or any(each.running >= HOGS for each in real_time)):
        raise NotSupported(f"--jitter: no CPU could be measured: {failed[0][1]}")
    meters = tuple(_meter(cpu, answer, ask, begun_s) for cpu, answer in sorted(said.items()))
    return Facts(ask, began, meters, tuple(failed), interrupted, topology.isolated, real_time)


def _measure(cpus: Collection[int], ask: Request) -> tuple[dict[int, dict[str, Any]], list[tuple[int, str]], bool]:
    """What the children send, by CPU; those that failed; whether a signal came."""
    said: dict[int, dict[str, Any]] = {}
    failed: list[tuple[int, str]] = []
    children: dict[Child, int] = {}
    interrupted = False
    with Guard():
        try:
            try:
                for cpu in cpus:
                    children[start_child(partial(_on_cpu, cpu, ask))] = cpu
                with Interruptible():
                    _receive(children, said, failed, ask.window_s + _LATE_S)
            except KeyboardInterrupt:
                interrupted = True
                for child in children:
                    child.stop()
                _receive(children, said, failed, _STOP_S)
        finally:
            for child in children:
                child.end()
    return said, failed, interrupted


def _receive(
    children: Mapping[Child, int], said: dict[int, dict[str, Any]], failed: list[tuple[int, str]], timeout_s: float
) -> None:
    """Wait for the answers of all children that have given none."""
    done = {*said, *(cpu for cpu, _ in failed)}
    waiting = {child for child, cpu in children.items() if cpu not in done}
    while waiting:
        ready = wait_for(waiting, timeout_s)
        for child in ready or waiting:
            try:
                answer = child.receive() if ready else None
            except OSError as error:
                failed.append((children[child], error.strerror or str(error)))
            else:
                if answer is None:
                    failed.append((children[child], "it ended without an answer" if ready else "no answer in time"))
                else:
                    said[children[child]] = answer
        waiting = waiting.difference(ready) if ready else set()


def _on_cpu(cpu: int, ask: Request, send: Send) -> None:
    pin({cpu})
    hiccups.measure(ask.window_s, ask.spin, send)


def _meter(cpu: int, said: Mapping[str, Any], ask: Request, begun_s: float) -> Meter:
    """`begun_s`: of the measurement. The children begin one after the other."""
    stalls = tuple(Stall(late / 1e9, at / 1e9 - begun_s) for late, at in said["stalls"])
    return Meter(
        cpu, (said["ended_ns"] - said["begun_ns"]) / 1e9, said["cpu_s"], dict(said["counted"]), stalls,
        said["above"], said["stalled_ns"] / 1e9 if ask.spin else None,
    )  # fmt: skip
