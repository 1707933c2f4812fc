"""The kernel's clock by adjtimex(2): no daemon and no server is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.clock.judge import judge
from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.collect.clock.collect import read_quick

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge the state of the clock. Of processes: nothing, since the clock is the machine's."""
    if look.pids:
        return Outcome()
    if not look.host.fs.is_live:
        return Outcome(gaps=[Gap("clock", "the clock", "this is a copy, which has no clock of its own")])
    facts = read_quick(look.host)
    gaps = [] if facts.kernel_problem is None else [Gap("clock", "the kernel's clock", facts.kernel_problem)]
    return Outcome(judge(facts).findings, () if gaps else ("the kernel's clock (adjtimex)",), gaps)
