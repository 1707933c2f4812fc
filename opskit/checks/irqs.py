"""Interrupts: CPUs that have time for nothing else, threads that are pinned to those, packets dropped from a full backlog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.places import pid_of
from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.checks.gaps import no_rates
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge one window. Of processes: the threads that are pinned to such a CPU."""
    if not look.host.fs.has_rates:
        return Outcome(gaps=no_rates(look.host.fs, "irqs", "rates of interrupts"))
    from opskit.analysis.irqs.judge import judge
    from opskit.collect.irqs.quick import QuickCollector

    facts = QuickCollector(look.host, look.window_s, look.pids).look()
    found = judge(facts).findings
    if look.pids:
        found = tuple(each for each in found if pid_of(each.entity) in look.pids)
    gaps = [Gap("irqs", *_in_two(line)) for line in facts.missing]
    looked_at = (plural(len(facts.cpus), "CPU"), plural(len(facts.interrupts), "interrupt"))
    return Outcome(found, looked_at, gaps)


def _in_two(line: str) -> tuple[str, str]:
    """`/proc/softirqs cannot be read: the kinds of softirqs are unknown` as what is missing, and why."""
    reason, _, what = line.partition(": ")
    return what.replace(" are unknown", "").replace(" is unknown", "") or "interrupts", reason
