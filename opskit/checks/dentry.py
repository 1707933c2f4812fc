"""Dentry and inode caches: their share of memory, and those of each cgroup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.dentry.judge import judge
from opskit.analysis.doctor.seen import Outcome
from opskit.collect.dentry import Request, collect

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge one reading. Of processes: nothing, since the caches are the machine's."""
    if look.pids:
        return Outcome()
    result = judge(collect(look.host, Request()))
    return Outcome(result.findings)
