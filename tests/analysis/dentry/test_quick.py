"""Dentry caches in the quick form."""

from __future__ import annotations

from opskit.analysis.dentry.quick import judge_quick
from opskit.collect.dentry import Facts
from opskit.proc.files.dentry_state import DentryState

GIB = 1 << 30


def facts(available, negative=30_000_000, pressure=100):
    state = DentryState(40_000_000, 39_000_000, negative)
    meminfo = {"MemTotal": 32 * GIB, "MemAvailable": available, "SReclaimable": 10 * GIB}
    return Facts(state, None, meminfo, 4096, vfs_cache_pressure=pressure)


def test_large_caches_are_notes_until_memory_is_short():
    """Negative dentries, and a kernel that may not reclaim them."""
    found = [(each.code, each.severity) for each in judge_quick(facts(12 * GIB, pressure=0))]
    assert found == [("dentry-negative", "note"), ("dentry-pressure", "note")]
    found = [(each.code, each.severity) for each in judge_quick(facts(GIB, pressure=0))]
    assert found == [("dentry-negative", "warning"), ("dentry-pressure", "warning")]


def test_a_file_server_is_healthy():
    """A third of memory in dentries of files that exist."""
    assert judge_quick(facts(12 * GIB, negative=1000)) == []
