"""Judge what a JVM's threads used of the CPUs during a run: by garbage collection, and waiting for a CPU. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding
from opskit.quantities import percent, plural, size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.collect.jpmp.collect import Sampled
    from opskit.collect.jpmp.load import Load

# The kernel cuts names to 15 bytes. Serial collects in the VM thread.
_COLLECTS = re.compile(
    r"(?:Par)?GC Thread#|G1 (?:Main|Conc|Refine|Service|Young|Parallel)|[ZX](?:Worker|Driver|Director)|Shenandoah|CMS |"
    r"Concurrent Mark"
)
_VM_THREAD = "VM Thread"
_FEWEST_SAMPLES, _SHORTEST_S, _FEWEST_PAUSES = 3, 1.0, 5  # less may be one collection, or a moment
_MOST_OF_CPU, _COLLECTING_CPUS = 0.5, 0.5
_WAIT_SHARE, _WAITING_THREADS = 0.4, 0.25
_NO_IDLE_SHARE, _THROTTLED_PERCENT = 0.1, 10.0  # no CPU was free


class CpuUse(NamedTuple):
    """Of a run: CPU time of the garbage collector and of the JVM; time on a CPU and waiting for one, of all threads; in seconds."""

    collecting_s: float
    used_s: float
    collector_wanted_s: float
    ran_s: float
    waited_s: float | None

    @property
    def wait_share(self) -> float | None:
        """Which part of the time in which threads wanted to run they waited for a CPU; None: unknown, or none wanted to."""
        wanted_s = self.ran_s + (self.waited_s or 0.0)
        return self.waited_s / wanted_s if self.waited_s is not None and wanted_s > 0 else None


def cpu_use(load: Load) -> CpuUse:
    """Add up the threads. What the VM thread does besides collections is not counted: at most the pauses are."""
    ran, waited = load.used_ms, load.waited_ms
    collecting = [tid for tid, name in load.names.items() if _COLLECTS.match(name)]
    used_ms = sum(ran.get(tid, 0.0) for tid in collecting)
    wanted_ms = used_ms + sum(waited.get(tid, 0.0) for tid in collecting)
    pauses_ms = (load.pause_s or 0.0) * 1000
    for tid in (tid for tid, name in load.names.items() if name == _VM_THREAD):
        used_ms += min(ran.get(tid, 0.0), pauses_ms)
        wanted_ms += min(ran.get(tid, 0.0) + waited.get(tid, 0.0), pauses_ms)
    ran_s = sum(ran.values()) / 1000
    waited_s = sum(waited.values()) / 1000 if waited else None
    return CpuUse(used_ms / 1000, max(load.used_s or 0.0, ran_s), wanted_ms / 1000, ran_s, waited_s)


def judge_load(live: Sampled) -> Iterator[Finding]:
    """Garbage collection that uses most of the CPU; threads that wait for a CPU while none is free."""
    load = live.load
    if load is None or len(live.dumps) < _FEWEST_SAMPLES or load.elapsed_s < _SHORTEST_S:
        return
    use, entity = cpu_use(load), Entity("process", live.pid, live.start_ticks)
    yield from _collects(load, use, entity)
    yield from _waits(load, use, entity)


def _collects(load: Load, use: CpuUse, entity: Entity) -> Iterator[Finding]:
    share = use.collecting_s / use.used_s if use.used_s else 0.0
    few = load.pauses is not None and load.pauses < _FEWEST_PAUSES
    if share <= _MOST_OF_CPU or use.collector_wanted_s / load.elapsed_s <= _COLLECTING_CPUS or few:
        return
    heap = "" if load.heap is None else f"; heap: {size(load.heap.used_bytes)} of {size(load.heap.max_bytes)} after the last one"
    pauses = "" if load.pauses is None else f" in {plural(load.pauses, 'pause')}"
    yield Finding(
        "jvm-gc-cpu", "warning", entity,
        f"garbage collection uses most of the CPU: {percent(share)} of what the JVM uses{heap}",
        f"{load.collector or 'GC'} threads: {use.collecting_s:.1f} s of {use.used_s:.1f} s of CPU{pauses} in {load.elapsed_s:.1f} s",
        next=shell.command("opskit", "jmap-diff", entity.name), share=round(share, 4), window_s=round(load.elapsed_s, 3),
    )  # fmt: skip


def _waits(load: Load, use: CpuUse, entity: Entity) -> Iterator[Finding]:
    share, waited_s = use.wait_share, use.waited_s
    if share is None or waited_s is None or share < _WAIT_SHARE or waited_s / load.elapsed_s < _WAITING_THREADS:
        return
    cause = _why_no_cpu(load, use, entity)
    if cause is None:
        return
    why, closer = cause
    yield Finding(
        "jvm-cpu-wait", "warning", entity,
        f"threads wait {percent(share)} of the time for a CPU: {why}",
        f"schedstat: {waited_s:.1f} s waiting, {use.ran_s:.1f} s on a CPU in {load.elapsed_s:.1f} s, summed over the threads",
        next=closer, share=round(share, 4), window_s=round(load.elapsed_s, 3),
    )  # fmt: skip


def _why_no_cpu(load: Load, use: CpuUse, entity: Entity) -> tuple[str, str] | None:
    """The cause and the closer look; None where a CPU was free, or whether one was is unknown: then waits are no shortage."""
    if (load.throttled_percent or 0.0) >= _THROTTLED_PERCENT:
        why = f"the CPU quota of its cgroup ran out in {percent((load.throttled_percent or 0.0) / 100)} of the periods"
        return why, shell.command("opskit", "jvms", entity.name, "-w")
    if load.cpus is None or load.idle_share is None or load.idle_share > _NO_IDLE_SHARE:
        return None
    cpus = plural(load.cpus, "CPU")
    if use.ran_s < load.cpus * load.elapsed_s * (1 - load.idle_share) / 2:
        return f"other processes use most of the {cpus} that it may use", shell.command("top")
    wanting = (use.ran_s + (use.waited_s or 0.0)) / load.elapsed_s
    why = f"{wanting:.1f} of its threads want to run at a time, on {cpus}"
    return why, shell.command("top", "-H", "-p", entity.name)
