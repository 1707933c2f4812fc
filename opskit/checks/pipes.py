"""Pipes: full ones with blocked writers, deadlocks, missing ends of file, FIFOs that nobody opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.checks.gaps import denied, no_rates
from opskit.collect.pipes_quick import collect_quick
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.checks.look import Look

_WINDOW_S = 0.5


def check(look: Look) -> Outcome:
    """Watch the threads that sleep in pipes for half a second. A copy has no such threads."""
    if not look.host.is_own:
        return Outcome(gaps=[Gap("pipes", "blocked pipes", "only opskit's own machine and PID namespace show them")])
    if not look.host.fs.has_rates:
        return Outcome(gaps=no_rates(look.host.fs, "pipes", "blocked pipes"))
    quick = collect_quick(look.host, look.pids, min(_WINDOW_S, look.window_s))
    gaps = []
    if not quick.known:
        gaps.append(Gap("pipes", "blocked pipes", "wchan is not readable: run as root"))
    if quick.unread:
        gaps.append(Gap("pipes", f"pipes of {plural(quick.unread, 'thread')}", "there are too many threads"))
    gaps += denied(look.host.fs, "pipes", "pipes", quick.denied)
    if quick.facts is None:
        return Outcome((), [plural(quick.threads, "thread")], gaps)
    from opskit.analysis.pipes.quick import judge_quick

    return Outcome(judge_quick(quick), [plural(quick.threads, "thread")], gaps)
