"""Dentry and inode caches: their share of the machine's memory. Those of cgroups are reclaimed at their limit, and do no harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.dentry.quick import judge_quick
from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.collect.dentry import Request, collect
from opskit.quantities import size

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge one reading. Of processes: nothing, since the caches are the machine's."""
    if look.pids:
        return Outcome()
    facts = collect(look.host, Request(of_host=True))
    held = facts.meminfo.get("SReclaimable")
    gaps = () if held is not None else (Gap("dentry", "dentry caches", "meminfo has no SReclaimable"),)
    return Outcome(judge_quick(facts), () if held is None else (f"{size(held)} of reclaimable slab",), gaps)
