"""Dentry and inode caches: their share of memory, and those of each cgroup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.dentry.quick import judge_quick
from opskit.analysis.doctor.seen import Outcome
from opskit.collect.dentry import Request, collect
from opskit.quantities import plural, size

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge one reading. Of processes: nothing, since the caches are the machine's."""
    if look.pids:
        return Outcome()
    facts = collect(look.host, Request())
    held = facts.meminfo.get("SReclaimable")
    slabs = "slabs" if held is None else f"{size(held)} of reclaimable slab"
    return Outcome(judge_quick(facts), (f"{slabs}, {plural(len(facts.cgroups), 'cgroup')}",))
