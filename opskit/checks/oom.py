"""OOM kills of the last 24 h, by the kernel's log and by counters. systemd-oomd logs elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.analysis.oom_quick import judge_quick, looked_at
from opskit.collect.kernel_log import OF_A_COPY
from opskit.collect.oom_quick import collect_quick

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge one window; of processes: the kills in their cgroups."""
    if not look.host.fs.is_live:
        return Outcome(gaps=[Gap("oom", "OOM kills", OF_A_COPY)])
    quick = collect_quick(look.host, look.window_s, look.pids)
    gaps = () if quick.unread is None else (Gap("oom", "the names of killed processes", quick.unread),)
    return Outcome(judge_quick(quick), looked_at(quick), gaps)
