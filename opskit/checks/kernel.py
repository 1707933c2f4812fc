"""The kernel's messages about errors, and its taints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.analysis.host.kernel import judge
from opskit.collect.host.kernel import RING, collect
from opskit.quantities import duration

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge one reading. Of processes: nothing, since the kernel is the machine's."""
    if look.pids:
        return Outcome()
    facts = collect(look.host)
    looked_at = ["taints of the kernel"] if facts.taints is not None else []
    if facts.source is not None:
        reach = "" if facts.covers_s is None else f" of the last {duration(facts.covers_s)}"
        looked_at.append(f"{facts.source}{reach}")
    gaps = [] if facts.problem is None else [Gap("kernel", RING, facts.problem)]
    return Outcome(judge(facts), looked_at, gaps)
