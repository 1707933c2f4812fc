"""Judge dentry and inode caches for doctor: reclaimable memory does harm only where memory is short. Pure.

A file server that walks many files fills its memory with them: that is what memory is for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.dentry.judge import judge
from opskit.analysis.mem.machine import available, supply

if TYPE_CHECKING:
    from opskit.analysis.finding import Finding
    from opskit.collect.dentry import Facts

_OF_HOST = ("dentry-negative", "dentry-pressure")


def judge_quick(facts: Facts) -> list[Finding]:
    """The findings; notes, unless the machine is short of memory."""
    is_short = supply(available(facts.meminfo), facts.meminfo.get("MemTotal", 0)) == "short"
    return [
        each if is_short and each.code in _OF_HOST else each._replace(severity="note") for each in judge(facts).findings
    ]
