"""Weigh what was read: dumps, live or saved, saved profiles, and the file that they are compared with. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.jpmp.stacks import count, cpu_over_run, weigh, with_weight
from opskit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.analysis.jpmp.judge import Weighing
    from opskit.collect.jpmp.collect import Facts
    from opskit.jvm.profiles import WeightedStack


def weigh_facts(facts: Facts, how: Weighing) -> tuple[list[WeightedStack], Mapping[int, float] | None]:
    """The stacks, and the CPU time of each thread (native id) if it is known. Raises UsageError if it is wanted and unknown."""
    dumps, live = facts.dumps, facts.live
    if not how.detailed:
        return [*count(dumps, how.naming, idle=not how.selection.idle), *facts.stacks], None
    before, after, natives = (None,) * 3 if live is None else (live.cpu_before, live.cpu_after, live.natives)
    cpu = cpu_over_run(dumps, before, after)
    if how.on_cpu:
        _check_cpu(facts, cpu)
    off = None
    if how.by == "off_cpu_ms" and live is not None:
        from opskit.analysis.jpmp.off_cpu import off_cpu

        off = off_cpu(live, cpu or {})
    weighed = weigh(dumps, how.naming, root=how.root, cpu_ms=cpu, natives=natives, on_cpu=how.on_cpu, off_cpu=off)
    return [*weighed, *facts.stacks], cpu


def _check_cpu(facts: Facts, cpu: Mapping[int, float] | None) -> None:
    if any(stack.cpu_ms is None for stack in facts.stacks):
        raise UsageError("--on-cpu: collapsed stacks say nothing about CPU time; leave it out")
    if facts.dumps and cpu is None:
        if len(facts.dumps) < 2:
            why = "CPU time since the start of a thread says nothing about its current stack"
            raise UsageError(f"--on-cpu needs two dumps or more of the same JVM: {why}")
        raise UsageError("--on-cpu: these dumps have no cpu= (JDK 11 and later write it); sample the live JVM instead")


def weigh_before(before: Facts, how: Weighing) -> Sequence[WeightedStack]:
    """The stacks to compare with. Collapsed stacks have one weight, whatever it is of: shares are compared."""
    if how.by == "off_cpu_ms" and before.dumps:
        raise UsageError("--offcpu: saved dumps have no time off the CPUs; compare with the -f json of another run")
    if how.by == "samples" or not before.stacks or any(getattr(stack, how.by) for stack in before.stacks):
        return weigh_facts(before, how._replace(detailed=True))[0]
    return [with_weight(stack, how.by, stack.samples) for stack in before.stacks]
