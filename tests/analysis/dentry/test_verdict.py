"""What the numbers mean."""

from __future__ import annotations

import pytest
from dentrytrees import facts_of

from opskit.analysis.dentry import judge as analysis
from opskit.analysis.dentry.usage import measure
from opskit.proc.files.dentry_state import DentryState

GIB = 1 << 30
DENTRIES_4_GIB = [("dentry", 20_000_000, 1 << 20)]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (facts_of(), "is unknown: neither slabinfo nor dentry-state could be read"),
        (
            facts_of(DentryState(1000, 900, 0)),
            "holds about 188 KiB (under 0.1 % of RAM): it is not the cause of high memory use; 0 % of it are negative",
        ),
        (
            facts_of(DentryState(20_000_000, 1_000_000, 0), DENTRIES_4_GIB, MemAvailable=1),
            "holds 4.0 GiB (25 % of RAM), 95 % of it in use, which a drop does not free; 0 % of it are negative entries",
        ),
        (
            facts_of(DentryState(20_000_000, 19_000_000, 0), DENTRIES_4_GIB, MemAvailable=1),
            "counted in MemAvailable; 0 % of it are negative entries. Dropping helps only for now: dentries come back with",
        ),
        (
            facts_of(DentryState(20_000_000, 19_000_000, 18_000_000), DENTRIES_4_GIB, MemAvailable=1),
            "files that do not exist. Dropping helps only for now: find that program.",
        ),
        (
            facts_of(DentryState(20_000_000, 19_000_000, None), DENTRIES_4_GIB),
            "reclaimable (this kernel has no MemAvailable, and `free` counts it as used). Dropping helps only for now: find",
        ),
    ],
)
def test_the_first_sentence(found, words):
    """The size, whether a drop frees it, and what it is."""
    assert words in analysis.verdict(measure(found))[0]


def test_other_large_caches_are_named():
    """Large inode caches name their file system; large unreclaimable slab says that no drop helps."""
    found = facts_of(
        DentryState(10, 5, 0),
        [("dentry", 10, 1), ("ext4_inode_cache", 10, 1 << 20), ("xfs_inode", 10, 5)],
        SUnreclaim=4 * GIB,
    )
    _, inodes, pinned = analysis.verdict(measure(found))
    assert inodes.startswith("Inode caches hold 4.0 GiB (25 % of RAM), most of it for ext4")
    assert pinned.startswith("Unreclaimable slab holds 4.0 GiB (25 % of RAM), which a drop does not free")


def test_little_to_free():
    """SReclaimable under 1 % of RAM."""
    assert "would free little" in analysis.verdict(measure(facts_of(SReclaimable=GIB // 100)))[-1]
    assert not [*analysis.little_to_free(measure(facts_of(SReclaimable=GIB)))]
    assert not [*analysis.little_to_free(measure(facts_of()))]
