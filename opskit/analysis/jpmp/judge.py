"""Judge thread dumps: weighted stacks, contended locks, deadlocks. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.jpmp import stacks as weighing
from opskit.analysis.jpmp.selection import Selection, select
from opskit.errors import UsageError
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.analysis.finding import Finding
    from opskit.analysis.jpmp.locks import Contention
    from opskit.collect.jpmp.facts import Facts
    from opskit.jvm.dumps.thread_dump import Waits
    from opskit.jvm.profiles import WeightedStack


class Weighing(NamedTuple):
    """How to weigh stacks and which to keep. `detailed` False: the dumps were read without thread names."""

    naming: weighing.Naming = weighing.Naming()
    selection: Selection = Selection()
    root: weighing.Root | None = None
    on_cpu: bool = False
    detailed: bool = True


class Profile(NamedTuple):
    """Weighted stacks: all, and those selected. `cpu_ms`: CPU time of all threads over the run. `before`: selected stacks."""

    stacks: Sequence[WeightedStack]
    selected: Sequence[WeightedStack]
    cpu_ms: float | None
    deadlocks: Sequence[Sequence[Waits]]
    findings: Sequence[Finding]
    before: Sequence[WeightedStack] | None = None


class Locks(NamedTuple):
    """The contended locks. `known`: whether the dumps contain lines about locks at all."""

    contention: Contention
    known: bool
    findings: Sequence[Finding]


def judge(facts: Facts, how: Weighing) -> Profile:
    """Weigh the stacks and find the deadlocks that the JVM reports. Raises UsageError if CPU time is wanted but unknown."""
    stacks, cpu = _weigh(facts, how)
    deadlocks = tuple(dict.fromkeys(deadlock for dump in facts.dumps for deadlock in dump.deadlocks))
    before = None if facts.before is None else _weigh(facts.before, how._replace(detailed=True))[0]
    return Profile(
        stacks,
        select(stacks, how.selection),
        None if cpu is None else sum(cpu.values()),
        deadlocks,
        _findings(facts, deadlocks) if deadlocks else (),
        None if before is None else select(before, how.selection),
    )


def _weigh(facts: Facts, how: Weighing) -> tuple[list[WeightedStack], Mapping[int, float] | None]:
    dumps, live = facts.dumps, facts.live
    if not how.detailed:
        return [*weighing.count(dumps, how.naming, idle=not how.selection.idle), *facts.stacks], None
    before, after, natives = (None,) * 3 if live is None else (live.cpu_before, live.cpu_after, live.natives)
    cpu = weighing.cpu_over_run(dumps, before, after)
    if how.on_cpu:
        _check_cpu(facts, cpu)
    weighed = weighing.weigh(dumps, how.naming, root=how.root, cpu_ms=cpu, natives=natives, on_cpu=how.on_cpu)
    return [*weighed, *facts.stacks], cpu


def _check_cpu(facts: Facts, cpu: Mapping[int, float] | None) -> None:
    if any(stack.cpu_ms is None for stack in facts.stacks):
        raise UsageError("--on-cpu: collapsed stacks say nothing about CPU time; leave it out")
    if facts.dumps and cpu is None:
        if len(facts.dumps) < 2:
            why = "CPU time since the start of a thread says nothing about its current stack"
            raise UsageError(f"--on-cpu needs two dumps or more of the same JVM: {why}")
        raise UsageError("--on-cpu: these dumps have no cpu= (JDK 11 and later write it); sample the live JVM instead")


def _findings(facts: Facts, deadlocks: Sequence[Sequence[Waits]]) -> list[Finding]:
    from opskit.analysis.jpmp.findings import reported_deadlock

    return [reported_deadlock(facts, deadlock) for deadlock in deadlocks]


def judge_locks(facts: Facts) -> Locks:
    """Find contended locks and deadlocks. Raises UsageError for profiles, which have no locks."""
    from opskit.analysis.jpmp.findings import lock_findings
    from opskit.analysis.jpmp.locks import contention
    from opskit.jvm.logs.timestamps import read_stamp

    if not facts.dumps:
        raise UsageError("--locks: collapsed stacks say nothing of locks; give the thread dumps themselves")
    times = [None if dump.time is None else read_stamp(dump.time).time_s for dump in facts.dumps]
    found = contention(facts.dumps, times if facts.live is None else facts.live.times_s)
    known = any(thread.locks for dump in facts.dumps for thread in dump.threads)
    return Locks(found, known, lock_findings(facts, found))
