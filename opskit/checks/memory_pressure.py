"""Tasks that wait for memory (PSI), swap activity, swap that is nearly full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.analysis.host.memory_pressure import is_pressed, judge_memory_pressure, looked_at
from opskit.collect.host.memory_pressure import collect_memory_pressure
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge one window; of processes: the pressure of their cgroups."""
    facts = collect_memory_pressure(look.host, look.window_s, look.pids, is_pressed)
    gaps = [Gap("memory-pressure", what, why) for what, why in facts.missing]
    seen = [f"cgroups of {plural(len(look.pids), 'process', 'processes')}"] if look.pids else looked_at(facts)
    return Outcome(judge_memory_pressure(facts, of_processes=bool(look.pids)), seen, gaps)
