"""What each JVM uses and suffers, from one look at it or from two. Pure.

Shares are of elapsed time: since the JVM's start with one look, of the interval with two. 100 % of CPU is one CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opskit import shell
from opskit.analysis.finding import Finding
from opskit.jvm.launch import vm_words
from opskit.jvm.perfdata.counters import GcWork, Heap, collector, gc_work, heap
from opskit.jvm.perfdata.stop_clock import stopped_s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.errors import OpskitError
    from opskit.jvm.attach.readiness import Attachable
    from opskit.jvm.discover import Jvm
    from opskit.proc.cgroup.limits import CpuLimit, MemoryLimit
    from opskit.proc.cgroup.owner import CgroupOwner

GC_PERCENT = 10.0  # of the time in pauses: more of it is trouble for whoever waits for an answer
THROTTLED_PERCENT = 5.0  # of the periods
MEMORY_PERCENT = 90.0  # of the limit at which the kernel kills


class Seen(NamedTuple):
    """One JVM at one moment. `at_s` is of a clock that only goes forward; `age_s` since the process began.

    `cpu_s` is used CPU, user and system. `release` is the JDK's version where the counters do not say it. `words` are those
    of its command line.
    None: the kernel, the JVM or the rights do not say.
    """

    jvm: Jvm
    at_s: float
    age_s: float | None
    user: str
    cpu_s: float | None
    threads: int | None
    rss_bytes: int | None
    place: CgroupOwner | None
    memory: MemoryLimit | None
    cpu: CpuLimit | None
    attach: Attachable | None
    release: str | None
    words: tuple[str, ...] = ()


class Row(NamedTuple):
    """A JVM as it is shown. None: unknown. A limit is None where there is none; `…_limited` tells the two apart."""

    pid: int
    ns_pid: int
    start_ticks: int | None
    user: str
    uid: int
    main: str
    kind: str
    jdk: str | None
    vendor: str | None
    collector: str | None
    place: CgroupOwner | None
    age_s: float | None
    cpu_percent: float | None
    heap: Heap | None
    rss_bytes: int | None
    memory: MemoryLimit | None
    cpu: CpuLimit | None
    throttled_percent: float | None
    gc: GcWork
    gc_percent: float | None
    safepoints: int | None
    stopped_s: float | None
    stopped_percent: float | None
    threads: int | None
    java_threads: int | None
    attach: Attachable | None
    vm_args: str | None
    words: tuple[str, ...]
    no_counters: OpskitError | None

    @property
    def memory_percent(self) -> float | None:
        """The resident memory in percent of the memory cgroup's limit; None where there is no limit."""
        if self.rss_bytes is None or self.memory is None or not self.memory.limit_bytes:
            return None
        return 100.0 * self.rss_bytes / self.memory.limit_bytes

    @property
    def subject(self) -> str:
        """`4242 (com.example.Main)`."""
        return f"{self.pid} ({self.main})"


class Sample(NamedTuple):
    """What changes of a JVM from look to look: small, since a long watch keeps many."""

    pid: int
    start_ticks: int | None
    cpu_percent: float | None
    heap_used_bytes: int | None
    rss_bytes: int | None
    throttled_percent: float | None
    gc_percent: float | None
    stopped_percent: float | None
    threads: int | None


def sample(row: Row) -> Sample:
    """The part of a row that a watch keeps."""
    used = row.heap.used_bytes if row.heap else None
    return Sample(
        row.pid, row.start_ticks, _rounded(row.cpu_percent), used, row.rss_bytes, _rounded(row.throttled_percent),
        _rounded(row.gc_percent), _rounded(row.stopped_percent), row.threads,
    )  # fmt: skip


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 3)


def row(now: Seen, before: Seen | None = None) -> Row:
    """The JVM as seen now, with shares since `before`: an earlier look at the same process."""
    perf = now.jvm.perf
    gc = gc_work(perf) if perf else GcWork(None, None, None)
    stopped = stopped_s(perf) if perf else None
    earlier_gc = earlier_stopped = None
    if before is not None and before.jvm.perf is not None:
        earlier_gc, earlier_stopped = gc_work(before.jvm.perf), stopped_s(before.jvm.perf)
    elapsed_s = now.age_s if before is None else now.at_s - before.at_s

    def share(total_s: float | None, earlier_s: float | None) -> float | None:
        if before is None:
            earlier_s = 0.0
        return None if total_s is None or earlier_s is None else _percent(total_s - earlier_s, elapsed_s)

    return Row(
        pid=now.jvm.pid,
        ns_pid=now.jvm.ns_pid,
        start_ticks=now.jvm.start_ticks,
        user=now.user,
        uid=now.jvm.uid,
        main=now.jvm.main,
        kind=now.jvm.kind,
        jdk=(perf.text("java.property.java.version") if perf else None) or now.release,
        vendor=perf.text("java.property.java.vm.vendor") if perf else None,
        collector=collector(perf) if perf else None,
        place=now.place,
        age_s=now.age_s,
        cpu_percent=share(now.cpu_s, before.cpu_s if before else None),
        heap=heap(perf) if perf else None,
        rss_bytes=now.rss_bytes,
        memory=now.memory,
        cpu=now.cpu,
        throttled_percent=_throttled(now.cpu, before.cpu if before else None),
        gc=gc,
        gc_percent=share(gc.pause_s, earlier_gc.pause_s if earlier_gc else None),
        safepoints=perf.number("sun.rt.safepoints") if perf else None,
        stopped_s=stopped,
        stopped_percent=share(stopped, earlier_stopped),
        threads=now.threads,
        java_threads=perf.number("java.threads.live") if perf else None,
        attach=now.attach,
        vm_args=(perf.text("java.rt.vmArgs") if perf else None) or " ".join(vm_words(list(now.words))) or None,
        words=now.words,
        no_counters=now.jvm.no_perf,
    )


def _percent(part: float, whole: float | None) -> float | None:
    """None where a counter ran backwards, or no time has passed."""
    return 100.0 * part / whole if whole is not None and whole > 0 and part >= 0 else None


def _throttled(now: CpuLimit | None, before: CpuLimit | None) -> float | None:
    """Of the scheduler's periods, the share that the quota cut short; None without a quota."""
    if now is None or now.periods is None or now.throttled_periods is None:
        return None
    periods, throttled = now.periods, now.throttled_periods
    if before is not None:
        if before.path != now.path or before.periods is None or before.throttled_periods is None:
            return None
        periods, throttled = periods - before.periods, throttled - before.throttled_periods
    if periods == 0 and throttled == 0:
        return 0.0
    return _percent(throttled, periods)


_ORDERS: dict[str, Callable[[Row], float | None]] = {
    "heap": lambda row: row.heap and row.heap.used_bytes,
    "cpu": lambda row: row.cpu_percent,
    "rss": lambda row: row.rss_bytes,
    "uptime": lambda row: row.age_s,
}


def ordered(rows: Sequence[Row], by: str) -> list[Row]:
    """By pid, or with the most heap used, CPU, resident memory or uptime first; what is unknown comes last."""
    value = _ORDERS.get(by)
    if value is None:
        return sorted(rows, key=lambda row: row.pid)

    def key(row: Row) -> tuple[bool, float, int]:
        number = value(row)
        return number is None, -(number or 0), row.pid

    return sorted(rows, key=key)


def findings(rows: Sequence[Row], size: Callable[[float | None], str]) -> list[Finding]:
    """What of it is trouble. `size` writes bytes for people."""
    return [finding for row in rows for finding in _of(row, size)]


def _of(row: Row, size: Callable[[float | None], str]) -> list[Finding]:
    found = []
    if row.gc_percent is not None and row.gc_percent >= GC_PERCENT:
        room = f"; {size(row.heap.used_bytes)} of at most {size(row.heap.max_bytes)} heap used" if row.heap else ""
        found.append(
            Finding(
                "jvm-gc-share", "warning", row.subject,
                f"{row.subject} stands still for its collector {row.gc_percent:.0f} % of the time{room}",
                f"sun.gc.collector.*.time of its hsperfdata: {row.gc.pauses} pauses",
                shell.command("opskit", "jmap-diff", row.pid),
            )
        )  # fmt: skip
    if row.cpu and row.cpu.cpus and row.throttled_percent is not None and row.throttled_percent >= THROTTLED_PERCENT:
        found.append(
            Finding(
                "jvm-cpu-throttled", "warning", row.subject,
                f"{row.subject} has no CPU left in {row.throttled_percent:.0f} % of the scheduler's periods: its cgroup's "
                f"quota is {row.cpu.cpus:g} CPUs",
                f"cpu.stat of {row.cpu.path}: {row.cpu.throttled_periods} of {row.cpu.periods} periods since it was made",
                "give the cgroup a larger CPU quota, or the JVM fewer threads (-XX:ActiveProcessorCount)",
            )
        )  # fmt: skip
    limit = row.memory.limit_bytes if row.memory else None
    if limit and row.memory and row.memory_percent is not None and row.memory_percent >= MEMORY_PERCENT:
        found.append(
            Finding(
                "jvm-near-memory-limit", "warning", row.subject,
                f"{row.subject} has {size(row.rss_bytes)} resident, {row.memory_percent:.0f} % of its cgroup's {size(limit)}, "
                "where the kernel kills",
                f"VmRSS of /proc/{row.pid}/status, limit of {row.memory.path}",
                "raise the memory limit, or lower -Xmx",
            )
        )  # fmt: skip
    if limit and row.memory and row.heap and row.heap.max_bytes > limit:
        found.append(
            Finding(
                "jvm-heap-above-memory-limit", "warning", row.subject,
                f"{row.subject} may grow its heap to {size(row.heap.max_bytes)}, but its cgroup's limit is {size(limit)}",
                f"the generations' maxCapacity in its hsperfdata, limit of {row.memory.path}",
                "lower -Xmx (or use -XX:MaxRAMPercentage), or raise the memory limit",
            )
        )  # fmt: skip
    return found
