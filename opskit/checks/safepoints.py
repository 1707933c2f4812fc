"""Pauses of JVMs over a short window: time to safepoint, and pauses that are no garbage collections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Outcome
from opskit.analysis.safepoints.window import judge
from opskit.checks.gaps import no_rates
from opskit.collect.safepoints.window import Request, collect
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge what the counters of each JVM show. What could not be read is said by the check of JVMs."""
    if not look.window_s:
        return Outcome(gaps=no_rates(look.host.fs, "safepoints", "JVM pauses"))
    facts = collect(look.host, Request(look.pids, look.window_s))
    return Outcome(
        judge(facts), [f"pauses of {plural(len(facts.watched), 'JVM')}"] if facts.watched or not look.pids else ()
    )
