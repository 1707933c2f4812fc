"""What is read of threads that want a CPU. None: unknown. Shares are of the window, 0 to 1; rates a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.collect.cpu_use import CpuUse
    from opskit.proc.process import Process


class Request(NamedTuple):
    """What to read. `pid` None: the machine. `ask`: the Java names of threads, by one thread dump of a JVM."""

    pid: int | None
    window_s: float
    ask: bool = False
    uids: frozenset[int] = frozenset()


class Thread(NamedTuple):
    """One thread that ran or waited in the window.

    `running`, `waiting`: on a CPU, and runnable without one. `throttled`: the part of `waiting` for which the cgroup `throttled_by` had
    used up its quota. `slices`: how often it got a CPU. `migrations` to another CPU. `allowed` CPUs; empty: unknown. `cpu`: the one it ran on last.
    `policy`: SCHED_OTHER 0, FIFO 1, RR 2, BATCH 3, IDLE 5, DEADLINE 6. `java_name`: of its dump, in full. `is_bound`: a kernel thread whose CPUs nobody
    can change. `cpuset`: of its cgroup, where that may be another one than that of the Facts.
    """

    tid: int
    name: str
    running: float
    waiting: float | None
    slices: float | None
    voluntary: float | None
    involuntary: float | None
    migrations: float | None
    throttled: float = 0.0
    allowed: frozenset[int] = frozenset()
    cpu: int | None = None
    policy: int = 0
    nice: int = 0
    java_name: str | None = None
    throttled_by: str | None = None
    is_bound: bool = False
    cpuset: frozenset[int] = frozenset()

    @property
    def average_wait_s(self) -> float | None:
        """How long it waited each time it got a CPU."""
        return self.waiting / self.slices if self.waiting is not None and self.slices else None


class ProcessWaits(NamedTuple):
    """One process of the machine: the sums of its threads (1 is one CPU), how many moved, and the thread that waited most."""

    process: Process
    running: float
    waiting: float | None
    slices: float | None
    threads: int
    worst: Thread | None
    voluntary: float | None = None
    involuntary: float | None = None

    @property
    def worst_waiting(self) -> float | None:
        """What the thread waited that waited most."""
        return None if self.worst is None else self.worst.waiting


class Quota(NamedTuple):
    """A cgroup that has a CPU quota: `cpus` in each period. In the window: periods, and those in which it was used up.

    `throttled`: for how much of the window at least one of its CPUs was throttled, by cpu.stat; None: not counted.
    """

    path: str
    cpus: float
    periods: int
    throttled_periods: int
    throttled: float | None = None


class CpuLoad(NamedTuple):
    """One CPU in the window. `pinned`: threads that may run on it alone or nearly, and did: (PID, TID, name, running), busiest first.

    `is_measured`: `use.softirq` is what a thread there lost to interrupts, not what ticks found.
    """

    use: CpuUse
    net_rx: float | None = None  # softirqs a second
    pinned: tuple[tuple[int, int, str, float], ...] = ()
    is_measured: bool = False


class Handoff(NamedTuple):
    """Two threads of a process that switch often, looked at together `looks` times in the window.

    `asleep`: how often both slept; `awake`: how often neither did. `call`: the system call that they sleep in most (futex: a lock or a condition);
    None: another one each, or unknown. `same_address`: they were seen to wait for the same futex.
    """

    first: int
    second: int
    looks: int
    asleep: int
    awake: int
    call: str | None = None
    same_address: bool = False


class Facts(NamedTuple):
    """One window of `window_s`.

    `process` None: the machine, with `processes`; else its `threads`, and in `processes` the others that used the CPUs, where one of its
    threads waited for them. `runnable`: how many tasks of the machine were runnable on average. `switches`: of the machine a second. `pressure`: the share of the
    window in which some task waited for a CPU (PSI), of what `pressure_of` says. `isolated`: CPUs that the scheduler leaves alone.
    `cpuset`: those that the process's cgroup, or opskit's, allows.
    """

    process: Process | None
    window_s: float
    threads: tuple[Thread, ...]
    processes: tuple[ProcessWaits, ...]
    cpus: tuple[CpuLoad, ...]
    quotas: tuple[Quota, ...] = ()
    runnable: float | None = None
    switches: float | None = None
    pressure: float | None = None
    isolated: frozenset[int] = frozenset()
    is_jvm: bool = False
    missing: tuple[str, ...] = ()
    all_threads: int = 0  # of the process, or of the machine: also those that did not move
    handoffs: tuple[Handoff, ...] = ()
    cpuset: frozenset[int] = frozenset()
    pressure_of: str | None = None  # "cgroup" or "machine"
