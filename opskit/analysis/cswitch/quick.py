"""Judge the quick look of `opskit doctor` at waits for a CPU. Pure.

A machine whose CPUs are in full use is healthy: a build's processes wait for each other, and a service beside it for its fair share.
So many runnable tasks are a note. It is a warning where a process of another job, one that sleeps and wakes up for its work, gets a
tenth or less of what it wants, after a long wait each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.cpu_quota import judge_quota
from opskit.analysis.cswitch.causes import CROWDED, FULL, OUTNUMBERED, PINNED, cause_of, mean, takes_what_is_left
from opskit.analysis.cswitch.findings import of_thread
from opskit.analysis.cswitch.result import Row
from opskit.analysis.cswitch.sentences import Words
from opskit.analysis.finding import HOST, Entity, Finding, most_severe_first
from opskit.proc.cgroup.limits import CpuLimit
from opskit.quantities import duration, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.finding import Severity
    from opskit.collect.cswitch.facts import Facts, ProcessWaits, Thread
    from opskit.collect.cswitch.quick import CgroupQuota, QuickFacts
    from opskit.proc.process import Process

_STARVED, _WANTS, _SMALL = 0.1, 0.5, 0.25  # of what it wants; of the window; CPUs of the whole process
_EACH_S = 0.03  # a wait for its turn behind some other threads is shorter
_SLEEPS, _PART = 0.3, 0.25  # of its switches; of all demand: what uses the CPUs
_LONG, _WANTS_SOME = 0.7, 0.3  # of a process that was asked about
_WHOLE, _NEVER_WAITS, _IDLE = 0.9, 0.05, 0.5  # a thread that uses a CPU while the others are idle
_MOST_NAMED = 3
_BATCH = 3  # SCHED_BATCH
_KTHREADD = 2


def judge_quickly(quick: QuickFacts, pids: Sequence[int] = ()) -> tuple[Finding, ...]:
    """The findings; with `pids` those about these processes and their cgroups."""
    found = [each for quota in quick.quotas if (each := _throttled(quick, quota)) is not None]
    paths = {each.entity.id for each in found}
    throttled = {waits.process.pid for quota in quick.quotas if quota.path in paths for waits in quota.processes}
    others = [waits for waits in quick.facts.processes if waits.process.pid not in throttled]
    found += [each for waits in others if (each := _pinned(quick, waits)) is not None]
    starved = [] if pids else [each for waits in others if (each := _starving(quick, waits)) is not None][:_MOST_NAMED]
    if pids:
        asked = [waits for waits in others if waits.process.pid in pids]
        found += [each for waits in asked if (each := _waiting(quick, waits)) is not None]
    else:
        found += starved
        found += _crowd(quick, starved)
    found += _alone(quick)
    if pids:
        found = [each for each in found if each.entity.kind == "cgroup" or _process_of(each.entity) in pids]
    return tuple(most_severe_first(found))


def _process_of(entity: Entity | None) -> int | str | None:
    while entity is not None and entity.kind != "process":
        entity = entity.inside
    return None if entity is None else entity.id


def _entity(quick: QuickFacts, process: Process) -> Entity:
    owned = quick.owned.get(process.pid)
    inside = Entity("cgroup", owned.cgroup) if owned is not None and owned.cgroup else None
    return Entity("process", process.pid, process.start_ticks, inside)


def _is_modest(thread: Thread | None) -> bool:
    """Whether it gave way to others by itself: nice above 0, SCHED_BATCH or SCHED_IDLE."""
    return thread is not None and (thread.nice > 0 or thread.policy == _BATCH or takes_what_is_left(thread))


def _throttled(quick: QuickFacts, quota: CgroupQuota) -> Finding | None:
    """A cgroup whose quota was used up. A note where the process that waits most gives way to others anyway."""
    limit = CpuLimit(
        quota.path, quota.cpus, quota.periods, quota.throttled_periods, quota.throttled_s,
        quota.directory, quota.version, quota.period_us,
    )  # fmt: skip
    first = quota.processes[0] if quota.processes else None
    who, target = (f"cgroup {quota.path}", ()) if first is None else (_named(first.process), (first.process.pid,))
    return judge_quota(
        limit, who, next_=shell.command("opskit", "cswitch", *target), window_s=quick.facts.window_s,
        is_note=first is not None and _is_modest(first.worst),
    )  # fmt: skip


def _named(process: Process) -> str:
    return f"{process.pid} ({process.command})"


def _pinned(quick: QuickFacts, waits: ProcessWaits) -> Finding | None:
    """A thread that waits for its CPUs, while others are idle."""
    thread = waits.worst
    if thread is None or cause_of(quick.facts, thread) != PINNED:
        return None
    found = of_thread(Words(quick.facts), Row(thread, PINNED), waits.process, is_machine=True)
    if found is None:
        return None
    process = _entity(quick, waits.process)
    entity = process if thread.tid == waits.process.pid else Entity("thread", thread.tid, inside=process)
    return found._replace(entity=entity, severity="note" if _is_modest(thread) else found.severity)


def _starving(quick: QuickFacts, waits: ProcessWaits) -> Finding | None:
    """A process that gets next to nothing, while processes of another job use the CPUs."""
    facts, thread = quick.facts, waits.worst
    if thread is None or cause_of(facts, thread) != OUTNUMBERED:
        return None
    wanted = thread.running + (thread.waiting or 0.0)
    is_hungry = wanted >= _WANTS and thread.running <= _STARVED * wanted and waits.running <= _SMALL
    each_s = _each_wait_s(thread)
    is_short = each_s is not None and each_s < _EACH_S
    is_of_kernel = _KTHREADD in (waits.process.pid, waits.process.ppid)
    computes = quick.sleeps.get(thread.tid, 1.0) < _SLEEPS
    if not is_hungry or is_short or is_of_kernel or computes or _is_modest(thread) or not _is_crowded(facts):
        return None
    if _uses_the_cpus(quick, waits):
        return None
    return _wait(quick, waits, thread, "warning")


def _waiting(quick: QuickFacts, waits: ProcessWaits) -> Finding | None:
    """Of a process that was asked about: a note for a long wait on a machine in full use."""
    thread = waits.worst
    if thread is None or cause_of(quick.facts, thread) != OUTNUMBERED:
        return None
    wanted = thread.running + (thread.waiting or 0.0)
    if wanted < _WANTS_SOME or (thread.waiting or 0.0) < _LONG * wanted:
        return None
    return _starving(quick, waits) or _wait(quick, waits, thread, "note")


def _each_wait_s(thread: Thread) -> float | None:
    """How long it waits each time that it gets a CPU; None: unknown."""
    return None if not thread.slices or thread.waiting is None else thread.waiting / thread.slices


def _wait(quick: QuickFacts, waits: ProcessWaits, thread: Thread, severity: Severity) -> Finding:
    facts, waiting, each_s = quick.facts, thread.waiting or 0.0, _each_wait_s(thread)
    often = "" if each_s is None else f", {duration(each_s)} each time"
    others = tuple(each for each in facts.processes if each is not waits)
    words = Words(facts._replace(threads=(thread,), processes=others))
    return Finding(
        "jvm-cpu-wait", severity, _entity(quick, waits.process), words.summary(Row(thread, OUTNUMBERED), waits.process),
        f"schedstat of {thread.tid}: {percent(waiting)} waiting{often}, {percent(thread.running)} on a CPU",
        next=words.look_at(waits.process), share=round(waiting / (thread.running + waiting), 4),
        window_s=round(facts.window_s, 3),
    )  # fmt: skip


def _is_crowded(facts: Facts) -> bool:
    return facts.pressure is None or facts.pressure >= CROWDED


def _uses_the_cpus(quick: QuickFacts, waits: ProcessWaits) -> bool:
    """Whether it belongs to what uses the CPUs: by its session, or its program and user (each JVM is called java)."""
    whole = by_session = by_program = 0.0
    own, process = quick.owned.get(waits.process.pid), waits.process
    for each in quick.facts.processes:
        demand, other = each.running + (each.waiting or 0.0), quick.owned.get(each.process.pid)
        whole += demand
        if own is not None and other is not None and own.session and own.session == other.session:
            by_session += demand
        if process.command != "java" and (process.command, process.uid) == (each.process.command, each.process.uid):
            by_program += demand
    return max(by_session, by_program) >= _PART * whole


def _crowd(quick: QuickFacts, starved: Sequence[Finding]) -> Iterator[Finding]:
    """More tasks want to run than there are CPUs: a note, unless others than those that use the CPUs get nothing."""
    facts = quick.facts
    if facts.runnable is None or facts.runnable <= len(facts.cpus) or not facts.processes or not _is_crowded(facts):
        return
    if mean(load.use.idle for load in facts.cpus) > FULL:
        return
    most = max(facts.processes, key=lambda waits: waits.running).process
    who = f"; {_named(most)} uses most" if quick.sees_all else " of the host of this container"
    psi = "" if facts.pressure is None else f"; PSI: some task waited {percent(facts.pressure)} of the time"
    yield Finding(
        "runnable-above-cpus", "warning" if starved else "note", HOST,
        f"{facts.runnable:.1f} tasks want to run on {plural(len(facts.cpus), 'CPU')}{who}",
        f"/proc/loadavg over {facts.window_s:.1f} s{psi}", next=shell.command("opskit", "cswitch"), share=facts.pressure,
        window_s=round(facts.window_s, 3),
    )  # fmt: skip


def _alone(quick: QuickFacts) -> Iterator[Finding]:
    """Threads that use a whole CPU while the other CPUs are idle: a bottleneck that more CPUs do not widen. Notes."""
    facts = quick.facts
    busy = [
        waits
        for waits in facts.processes
        if waits.worst is not None and waits.worst.running >= _WHOLE and (waits.worst.waiting or 0.0) <= _NEVER_WAITS
        and waits.running < 1 + _SMALL and _KTHREADD not in (waits.process.pid, waits.process.ppid)
    ]  # fmt: skip
    idle = sum(load.use.idle for load in facts.cpus)
    if len(facts.cpus) < 2 or idle < _IDLE * (len(facts.cpus) - len(busy)) or idle < _IDLE:
        return
    for waits in busy[:_MOST_NAMED]:
        thread, process = waits.worst, waits.process
        if thread is None:
            continue
        entity = _entity(quick, process)
        about = entity if thread.tid == process.pid else Entity("thread", thread.tid, inside=entity)
        name = "" if thread.tid == process.pid else f"thread {thread.name} of "
        yield Finding(
            "thread-uses-whole-cpu", "note", about,
            f"{name}{_named(process)} uses {percent(thread.running)} of a CPU, while {idle:.1f} of "
            f"{plural(len(facts.cpus), 'CPU')} are idle",
            f"schedstat of {thread.tid} over {facts.window_s:.1f} s", next=shell.command("opskit", "profile", process.pid),
            share=round(thread.running, 4), window_s=round(facts.window_s, 3),
        )  # fmt: skip
