"""Judge what a JVM's threads used of the CPUs during a run: by garbage collection, and waiting for a CPU. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.cpu_quota import THROTTLED_SHARE, judge_quota, most_throttled, throttled_share
from opskit.analysis.finding import Finding
from opskit.quantities import percent, plural, size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.finding import Entity
    from opskit.collect.jpmp.load import Load

# The kernel cuts names to 15 bytes. Serial collects in the VM thread.
_COLLECTS = re.compile(
    r"(?:Par)?GC Thread#|G1 (?:Main|Conc|Refine|Service|Young|Parallel)|[ZX](?:Worker|Driver|Director)|Shenandoah|CMS |"
    r"Concurrent Mark"
)
_VM_THREAD = "VM Thread"
_SHORTEST_S, _FEWEST_PAUSES = 1.0, 5  # less may be one collection, or a moment
_MOST_OF_CPU, _COLLECTING_CPUS = 0.5, 0.5
_WAITING_THREADS, _WAIT_SHARE = 0.25, 0.2  # less is not worth a line
# Healthy servers on a busy machine wait up to 78 % of the time, with other processes.
_STARVED_BY_OWN, _STARVED_BY_OTHERS = 0.8, 0.9
_NO_IDLE_SHARE = 0.1


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


class Waits(NamedTuple):
    """Threads that wait for a CPU: a sentence, the closer look (None: a CPU was free), and whether this is a shortage."""

    summary: str
    closer: str | None = None
    is_shortage: bool = False


class Percents(NamedTuple):
    """Garbage collection, of the CPU time of the JVM; waiting, of the time in which threads want to run. None: unknown."""

    collecting: float | None = None
    waiting: float | None = None


def percents(load: Load | None) -> Percents:
    """The shares of a run. The VM thread's part of the collections is unknown without hsperfdata."""
    if load is None:
        return Percents()
    use = cpu_use(load)
    collecting = 100 * use.collecting_s / use.used_s if use.used_s and load.collector else None
    return Percents(collecting, None if use.wait_share is None else 100 * use.wait_share)


def judge_load(load: Load, entity: Entity, *, is_jvm: bool = True) -> Iterator[Finding]:
    """Garbage collection that uses most of the CPU; a CPU quota that runs out; a shortage of CPUs."""
    if load.elapsed_s < _SHORTEST_S:
        return
    use = cpu_use(load)
    if is_jvm:
        yield from _collects(load, use, entity)
    quota, waits = most_throttled(load.quotas or ()), cpu_waits(load, entity.id)
    closer = shell.command("opskit", "cswitch", entity.name)
    throttled = quota and judge_quota(quota, entity.name, next_=closer, window_s=load.elapsed_s)
    yield from (throttled,) if throttled else ()
    if waits is not None and waits.is_shortage:
        yield Finding(
            "jvm-cpu-wait", "warning", entity, waits.summary,
            f"schedstat: {use.waited_s or 0:.1f} s waiting, {use.ran_s:.1f} s on a CPU in {load.elapsed_s:.1f} s, all threads",
            next=waits.closer, share=round(use.wait_share or 0.0, 4), window_s=round(load.elapsed_s, 3),
        )  # fmt: skip


def _collects(load: Load, use: CpuUse, entity: Entity) -> Iterator[Finding]:
    share = use.collecting_s / use.used_s if use.used_s else 0.0
    few = load.pauses is not None and load.pauses < _FEWEST_PAUSES
    if share <= _MOST_OF_CPU or use.collector_wanted_s / load.elapsed_s <= _COLLECTING_CPUS or few:
        return
    heap = (
        ""
        if load.heap is None
        else f"; heap: {size(load.heap.used_bytes)} of {size(load.heap.max_bytes)} after the last one"
    )
    pauses = "" if load.pauses is None else f", {plural(load.pauses, 'pause')}"
    yield Finding(
        "jvm-gc-cpu", "warning", entity,
        f"garbage collection uses most of the CPU: {percent(share)} of what the JVM uses{heap}",
        f"{load.collector or 'GC'}: {use.collecting_s:.1f} s of {use.used_s:.1f} s of CPU{pauses} in {load.elapsed_s:.1f} s",
        next=shell.command("opskit", "jmap-diff", entity.name), share=round(share, 4), window_s=round(load.elapsed_s, 3),
    )  # fmt: skip


def vm_thread_share(load: Load) -> float | None:
    """The VM thread's share of the CPU where it may be collecting, which only hsperfdata can tell; None elsewhere."""
    used_ms = sum(load.used_ms.get(tid, 0.0) for tid, name in load.names.items() if name == _VM_THREAD)
    share = used_ms / 1000 / load.used_s if load.used_s else 0.0
    return share if load.collector is None and share > _MOST_OF_CPU and load.elapsed_s >= _SHORTEST_S else None


def cpu_waits(load: Load, pid: object) -> Waits | None:
    """How long threads wait for a CPU, and why; None: unknown, or not worth a line."""
    if load.elapsed_s < _SHORTEST_S:
        return None
    use = cpu_use(load)
    share, waited_s = use.wait_share, use.waited_s or 0.0
    if share is None or share < _WAIT_SHARE or waited_s / load.elapsed_s < _WAITING_THREADS:
        return None
    said = f"threads wait {percent(share)} of the time for a CPU"
    closer = shell.command("opskit", "cswitch", pid)
    quota = most_throttled(load.quotas or ())
    if quota is not None and throttled_share(quota) >= THROTTLED_SHARE:  # a finding of its own
        why = f"the CPU quota of {quota.path} ran out in {percent(throttled_share(quota))} of the periods"
        return Waits(f"{said}: {why}", closer)
    if load.cpus is None or load.idle_share is None:
        return Waits(f"{said} (whether a CPU was free is unknown)")
    cpus = plural(load.cpus, "CPU")
    if load.idle_share > _NO_IDLE_SHARE:
        return Waits(f"{said}, in bursts: {percent(load.idle_share)} of its {cpus} is idle")
    if use.ran_s < load.cpus * load.elapsed_s * (1 - load.idle_share) / 2:
        why = f"other processes use most of its {cpus}"
        return Waits(f"{said}: {why}", closer, share >= _STARVED_BY_OTHERS)
    why = f"{(use.ran_s + waited_s) / load.elapsed_s:.1f} of its threads want to run at a time, on {cpus}"
    return Waits(f"{said}: {why}", closer, share >= _STARVED_BY_OWN)
