"""What the numbers mean."""

from __future__ import annotations

import pytest
from dentrytrees import facts_of

from opskit.analysis.dentry import judge as analysis
from opskit.analysis.dentry.judge import judge
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
    assert "would free little" in next(analysis.little_to_free(measure(facts_of(SReclaimable=GIB // 100))))
    assert not [*analysis.little_to_free(measure(facts_of(SReclaimable=GIB)))]
    assert not [*analysis.little_to_free(measure(facts_of()))]


SMALL = (DentryState(100, 50, 60), [("dentry", 100, 1000)])


@pytest.mark.parametrize(
    ("meminfo", "words"),
    [
        ({"AnonPages": GIB, "Shmem": 5 * GIB, "Cached": 6 * GIB, "Hugetlb": 2 * GIB},
         "The most memory is held by tmpfs and shared memory with 5.0 GiB (31 % of RAM), then reserved huge pages with 2.0 GiB (12 % of RAM): opskit mem"),
        ({"AnonPages": 9 * GIB, "SUnreclaim": GIB},
         "The most memory is held by anonymous memory of processes with 9.0 GiB (56 % of RAM), then unreclaimable slab with 1.0 GiB (6.2 % of RAM): opskit mem"),
        ({"Shmem": 5 * GIB}, "What holds the memory: opskit mem"),
        ({"AnonPages": 0}, "What holds the memory: opskit mem"),
    ],
)  # fmt: skip
def test_innocent_caches(meminfo, words):
    """Dentries and inodes that take little: another holder is named, and nothing is advised, not even against negative entries."""
    found = judge(facts_of(*SMALL, MemAvailable=GIB, SReclaimable=GIB, **meminfo))
    assert found.verdict[-1] == words
    assert not found.ways
    assert not any("drop" in line.lower() for line in found.verdict)


def test_caches_that_are_not_innocent():
    """Where dentries, inodes or reclaimable slab take a tenth of RAM, the commands against them are told, and no other holder is."""
    large = [
        facts_of(DentryState(100, 50, 60), DENTRIES_4_GIB, MemAvailable=1, AnonPages=GIB),
        facts_of(DentryState(100, 50, 60), [("dentry", 10, 1), ("ext4_inode_cache", 10, 1 << 20)], AnonPages=GIB),
        facts_of(*SMALL, SReclaimable=4 * GIB, AnonPages=GIB),
        facts_of(AnonPages=GIB),  # nothing known of them
    ]
    for facts in large:
        assert not any("opskit mem" in line for line in judge(facts).verdict)
    assert judge(large[2]).ways[-1] == "drop all that is unused, host-wide: opskit dentry --drop"
