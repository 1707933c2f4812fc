"""Waits for a CPU: cgroups that are throttled, threads pinned to busy CPUs, processes that others starve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.checks.gaps import no_rates
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge one window. Threads are read only where some wait or a CPU is in full use."""
    if not look.host.fs.has_rates:
        return Outcome(gaps=no_rates(look.host.fs, "cswitch", "waits for a CPU"))
    from opskit.analysis.cswitch.quick import judge_quickly
    from opskit.collect.cswitch.quick import look_quickly

    quick = look_quickly(look.host, look.pids, look.window_s)
    looked_at = [plural(len(quick.facts.cpus), "CPU")]
    if not quick.is_calm:
        looked_at.append(plural(quick.facts.all_threads, "thread"))
    if quick.quota_count:
        looked_at.append(plural(quick.quota_count, "CPU quota"))
    gaps = []
    if not quick.has_waits:
        why = "this kernel does not fill schedstat (CONFIG_SCHED_INFO)"
        gaps.append(Gap("cswitch", "how long threads wait for a CPU", why))
    return Outcome(judge_quickly(quick, look.pids), looked_at, gaps)
