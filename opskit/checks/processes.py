"""Zombies and stopped processes. Blocked ones (state D) are those of the check `io`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.analysis.host.processes import judge
from opskit.checks.gaps import no_rates, why_denied
from opskit.collect.host.processes import collect
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.checks.look import Look

_WINDOW_S = 0.5


def check(look: Look) -> Outcome:
    """Look twice at the processes that do not run; in a copy once."""
    if look.host.fs.is_live and not look.host.fs.has_rates:
        return Outcome(gaps=no_rates(look.host.fs, "processes", "zombies and stopped processes"))
    facts = collect(look.host, min(_WINDOW_S, look.window_s), look.pids)
    looked_at = [plural(facts.processes, "process", "processes"), plural(facts.zombies, "lasting zombie")]
    gaps = []
    if facts.denied:
        gaps.append(Gap("processes", plural(facts.denied, "process", "processes"), why_denied(look.host.fs)))
    if facts.is_hidden:
        gaps.append(Gap("processes", "processes of other users", "hidden (hidepid): run as root"))
    return Outcome(judge(facts), looked_at, gaps)
