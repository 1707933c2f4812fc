"""Temperatures: CPUs that are slowed down for it, sensors at their limit, frequencies that were capped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Outcome
from opskit.checks.gaps import no_rates
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.checks.look import Look
    from opskit.collect.host.thermal import Facts


def check(look: Look) -> Outcome:
    """Judge one window. Of processes: nothing, since the CPUs are the machine's."""
    if look.pids:
        return Outcome()
    from opskit.analysis.host.thermal import judge
    from opskit.collect.host.thermal import collect

    facts = collect(look.host, look.window_s)
    is_unknown = facts.slowed and not look.host.fs.has_rates
    gaps = no_rates(look.host.fs, "thermal", "whether CPUs are slowed down now") if is_unknown else ()
    return Outcome(judge(facts), [*_looked_at(facts)], gaps)


def _looked_at(facts: Facts) -> Iterator[str]:
    """That a virtual machine shows no temperature is normal: no gap."""
    if not facts.shows_something:
        yield "no thermal counters (virtual machine)" if facts.is_virtual else "no thermal counters"
    if facts.slowed:
        yield plural(len(facts.slowed), "throttle counter")
    if facts.temperatures:
        yield plural(len(facts.temperatures), "temperature")
    if facts.frequencies:
        yield plural(len(facts.frequencies), "CPU frequency", "CPU frequencies")
