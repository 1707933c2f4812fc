"""Storage: slow and hung devices, threads stuck in state D, I/O limits of cgroups, programs that wait for each other's requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.analysis.io.quick import is_pressed, judge_quick, looked_at
from opskit.checks.gaps import no_rates
from opskit.collect.io.quick import collect_quick

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge one window; of processes: their threads and cgroups."""
    if not look.window_s:
        return Outcome(gaps=no_rates(look.host.fs, "io", "reads and writes"))
    quick = collect_quick(look.host, look.window_s, look.pids, is_pressed)
    gaps = [Gap("io", what, why) for what, why in quick.missing]
    return Outcome(judge_quick(quick), looked_at(quick, look.pids), gaps)
