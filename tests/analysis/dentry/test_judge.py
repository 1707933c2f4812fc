"""Findings, and the commands that help."""

from __future__ import annotations

import pytest
from dentrytrees import facts_of

from opskit.analysis.dentry.judge import exceeds, findings, ways
from opskit.analysis.dentry.usage import measure
from opskit.proc.cgroup.slab import CgroupSlab
from opskit.proc.files.dentry_state import DentryState

GIB = 1 << 30
FULL = facts_of(DentryState(20_000_000, 19_000_000, 18_000_000), [("dentry", 1, 1 << 20), ("ext4_inode_cache", 1, 1)])
GROUP = CgroupSlab("/pod a", "/sys/fs/cgroup/pod a", GIB, None, GIB, GIB, reclaims=True)


@pytest.mark.parametrize(
    ("found", "codes"),
    [
        (facts_of(), []),
        (FULL, ["dentry-negative"]),
        (facts_of(DentryState(10_000, 10_000, 9_000)), []),  # too few to matter
        (facts_of()._replace(cgroups=(GROUP,)), ["dentry-cgroup"]),
        (facts_of()._replace(cgroups=(GROUP._replace(limit_bytes=3 * GIB),)), []),
        (facts_of()._replace(vfs_cache_pressure=0), ["dentry-pressure"]),
        (facts_of()._replace(vmstat={"drop_slab": 2}), ["dentry-dropped"]),
        (facts_of()._replace(vmstat={"drop_slab": 0}), []),
    ],
)
def test_codes(found, codes):
    """Each rule finds what it is for, and nothing else."""
    assert [one.code for one in findings(measure(found))] == codes


def test_the_share_is_a_finding_only_where_it_was_asked_for():
    """--check PERCENT."""
    usage = measure(FULL)
    assert "dentry-share" not in [one.code for one in findings(usage)]
    assert [one.severity for one in findings(usage, 20) if one.code == "dentry-share"] == ["error"]
    assert (exceeds(usage, 20), exceeds(usage, 50)) == (True, False)
    assert exceeds(measure(facts_of()), 50) is None


def test_a_cgroup_is_named_and_its_command_is_quoted():
    """Names of cgroups are untrusted."""
    [found] = findings(measure(facts_of()._replace(cgroups=(GROUP,))))
    assert found.fix == "echo 1073741824 > '/sys/fs/cgroup/pod a/memory.reclaim'"


def test_a_kernel_without_sreclaimable_gets_all_advice():
    """Linux 2.6.18; half of RAM are dentries."""
    old = facts_of(DentryState(60_000_000, 60_000_000, None), [("dentry_cache", 1, 2 << 20)])
    told = ways(measure(old._replace(vfs_cache_pressure=100)))
    assert any("--drop" in way for way in told)
    assert any("vm.vfs_cache_pressure=200" in way for way in told)
