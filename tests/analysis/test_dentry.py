"""What the numbers mean: sentences, findings and shares, for any numbers and for numbers that are not known."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis import dentry as analysis
from opskit.analysis.dentry import Facts, Sample
from opskit.proc.cgroup.slab import CgroupSlab
from opskit.proc.files.dentry_state import DentryState
from opskit.proc.files.slabinfo import Slab
from opskit.render.views import dentry as view

GIB = 1 << 30
counts = st.integers(0, 10**10)
maybe = st.none() | counts
names = st.sampled_from(
    ["dentry", "dentry_cache", "ext4_inode_cache", "xfs_inode", "inode_cache", "zfs_znode_cache", "filp", "kmalloc-64"]
)
slabs = st.lists(
    st.builds(Slab, names, counts, counts, st.integers(1, 10_000), counts, st.integers(1, 8)),
    unique_by=lambda s: s.name,
)
meminfos = st.dictionaries(
    st.sampled_from(["MemTotal", "MemAvailable", "MemFree", "Cached", "Buffers", "SReclaimable", "SUnreclaim"]), counts
)
states = st.none() | st.builds(DentryState, counts, counts, maybe)
cgroups = st.lists(
    st.builds(
        CgroupSlab,
        st.sampled_from(["/a", "/a/b", "/c"]),
        st.just("/sys/fs/cgroup/x"),
        maybe,
        maybe,
        maybe,
        maybe,
        maybe,
    ),
    unique_by=lambda group: group.path,
)


@st.composite
def facts(draw):
    found = draw(st.none() | slabs)
    caches = None if found is None else analysis.classify(found, {}, 4096)
    return Facts(draw(states), caches, draw(meminfos), tuple(draw(cgroups)), draw(maybe), draw(maybe), draw(maybe))


@given(facts(), st.floats(0, 100))
def test_any_numbers_give_sentences_and_never_a_none(found, max_percent):
    """Whatever is unknown: there is a verdict, nothing says None, JSON can be written, and all agree on --check."""
    groups = analysis.cgroup_shares(found.cgroups, 4096)
    lines = [*analysis.verdict(found), *analysis.ways(found, groups, deletes=0), view.settings_line(found)]
    findings = analysis.findings(found, groups, max_percent)
    lines += [view.finding_line(finding) for finding in findings]
    assert lines[0]
    assert all("None" not in line for line in lines)
    json.dumps(view.facts_object(found, groups), allow_nan=False)
    exceeds = analysis.exceeds(found, max_percent)
    assert ("dentry-share" in {finding.code for finding in findings}) == (exceeds is True)
    if found.caches is None:
        assert found.dentry_slab_bytes is None
        assert found.inode_slab_bytes is None
    for row in view.figures(found, {}):
        assert row.share is None or row.share >= 0
    for column in view.figure_columns(growing=True):
        for row in view.figures(found, {}):
            column.human(row)


@given(slabs)
def test_caches_are_classed_once_and_none_is_lost(found):
    """Largest first, the bytes add up, and the inode caches of all owners are all inode caches."""
    caches = analysis.classify(found, {}, 4096)
    assert sum(cache.size_bytes for cache in caches) == sum(slab.bytes(4096) for slab in found)
    assert [cache.size_bytes for cache in caches] == sorted((cache.size_bytes for cache in caches), reverse=True)
    owned = analysis.inodes_by_owner(caches)
    assert sum(one.size_bytes for one in owned) == sum(cache.size_bytes for cache in caches if cache.kind == "inode")


@pytest.mark.parametrize(
    ("name", "kind", "owner"),
    [
        ("dentry", "dentry", None),
        ("dentry_cache", "dentry", None),
        ("ext4_inode_cache", "inode", "ext4"),
        ("xfs_inode", "inode", "xfs"),
        ("btrfs_inode", "inode", "btrfs"),
        ("zfs_znode_cache", "inode", "zfs"),
        ("hfsplus_icache", "inode", "hfsplus"),
        ("ubifs_inode_slab", "inode", "ubifs"),
        ("ceph_inode_info", "inode", "ceph"),
        ("shmem_inode_cache", "inode", "tmpfs"),
        ("inode_cache", "inode", "other"),
        ("jfs_ip", "inode", "jfs"),
        ("ext4_fc_dentry_update", "other", None),
        ("fscrypt_inode_info", "other", None),
        ("jbd2_inode", "other", None),
        ("inotify_inode_mark", "other", None),
        ("btrfs_inode_defrag", "other", None),
        ("kmalloc-192", "other", None),
    ],
)
def test_kinds(name, kind, owner):
    """What is an inode cache, and whose."""
    [cache] = analysis.classify([Slab(name, 1, 1, 1, 1, 1)], {}, 4096)
    assert (cache.kind, cache.owner) == (kind, owner)


def machine(state=None, caches=(), **meminfo):
    found = (
        analysis.classify([Slab(name, n, n, 192, pages, 1) for name, n, pages in caches], {}, 4096) if caches else None
    )
    return Facts(state, found, {"MemTotal": 16 * GIB, **meminfo})


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (machine(), "is unknown: neither slabinfo nor dentry-state could be read"),
        (
            machine(DentryState(1000, 900, 0)),
            "holds about 188 KiB (under 0.1 % of RAM): it is not what eats the memory",
        ),
        (
            machine(DentryState(20_000_000, 1_000_000, 0), [("dentry", 20_000_000, 1 << 20)], MemAvailable=1),
            "holds 4.0 GiB (25 % of RAM), 95 % of it in use and not to be had by dropping; 0 % of it are negative entries",
        ),
        (
            machine(DentryState(20_000_000, 19_000_000, 0), [("dentry", 20_000_000, 1 << 20)], MemAvailable=1),
            "already counted in MemAvailable; 0 % of it are negative entries. Dropping helps for now; they come back with use.",
        ),
        (
            machine(DentryState(20_000_000, 19_000_000, None), [("dentry", 20_000_000, 1 << 20)]),
            "reclaimable (this kernel has no MemAvailable, and `free` counts it as used). Dropping helps for now; finding who",
        ),
    ],
)
def test_the_first_sentence(found, words):
    """How much, whether it can be had, and what it is."""
    assert words in analysis.verdict(found)[0]


def test_other_eaters_are_named():
    """Large inode caches name their file system; large unreclaimable slab says that no drop helps."""
    found = machine(
        DentryState(10, 5, 0),
        [("dentry", 10, 1), ("ext4_inode_cache", 10, 1 << 20), ("xfs_inode", 10, 5)],
        SUnreclaim=4 * GIB,
    )
    _, inodes, pinned = analysis.verdict(found)
    assert inodes.startswith("Inode caches hold 4.0 GiB (25 % of RAM), most of it for ext4")
    assert pinned.startswith("Unreclaimable slab holds 4.0 GiB (25 % of RAM): no drop frees that")


def test_little_to_win_is_said():
    """SReclaimable under 1 % of RAM."""
    assert "would win little" in analysis.verdict(machine(SReclaimable=GIB // 100))[-1]
    assert analysis.little_to_win(machine(SReclaimable=GIB)) is None
    assert analysis.little_to_win(machine()) is None


def test_growth_is_a_slope_a_minute_and_unknown_without_two_samples():
    """Per number and per cache; what was never known does not grow."""

    def at(seconds, count):
        return Sample(seconds, dict.fromkeys(analysis.WATCHED) | {"dentries": count}, {"dentry": count * 192})

    assert analysis.growth_per_min([at(0, 100)])["dentries"] is None
    growth = analysis.growth_per_min([at(0, 100), at(2, 120), at(4, 140)])
    assert growth["dentries"] == pytest.approx(600)
    assert growth["negative"] is None
    assert analysis.cache_growth_per_min([at(0, 100), at(2, 120)])["dentry"] == pytest.approx(600 * 192)


@pytest.mark.parametrize(("level", "freed"), [("dentries", 300), ("pagecache", 50), ("all", 350)])
def test_what_a_drop_freed(level, freed):
    """Reclaimable slab for dentries, page cache for the page cache; unknown where the kernel does not say."""
    before = machine(SReclaimable=1000, Cached=500, Buffers=10)
    after = machine(SReclaimable=700, Cached=460, Buffers=0)
    assert analysis.freed_bytes(level, before, after) == freed
    assert analysis.freed_bytes(level, before, machine()) is None


@pytest.mark.parametrize("page", [4096, 16384, 65536])
def test_the_page_size_of_another_machine(page):
    """What is counted in bytes, against what is counted in pages a moment later."""
    assert analysis.page_bytes({"SReclaimable": 250_000 * page}, {"nr_slab_reclaimable": 250_700}, 1) == page
    assert analysis.page_bytes({}, {}, 4096) == 4096
    # Files of two machines or two days: no page size comes out of them.
    assert analysis.page_bytes({"SReclaimable": 250_000 * page}, {"nr_slab_reclaimable": 170_000}, 4096) == 4096


def test_a_kernel_that_does_not_tell_what_is_reclaimable_is_told_the_ways_all_the_same():
    """Linux 2.6.18 has no SReclaimable; half of RAM are dentries."""
    caches = analysis.classify([Slab("dentry_cache", 1, 1, 192, 3 << 20, 1)], {}, 4096)
    old = Facts(DentryState(60_000_000, 60_000_000, None), caches, {"MemTotal": 24 * GIB}, vfs_cache_pressure=100)
    told = analysis.ways(old, [], deletes=None)
    assert any("--drop" in way for way in told)
    assert any("vm.vfs_cache_pressure=200" in way for way in told)
