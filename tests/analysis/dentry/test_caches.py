"""Slab caches by kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.dentry.caches import classify, count_inodes, inodes_by_owner
from opskit.proc.files.slabinfo import Slab

counts = st.integers(0, 10**10)
names = st.sampled_from(
    ["dentry", "dentry_cache", "ext4_inode_cache", "xfs_inode", "inode_cache", "zfs_znode_cache", "filp", "kmalloc-64"]
)
slabs = st.lists(
    st.builds(Slab, names, counts, counts, st.integers(1, 10_000), counts, st.integers(1, 8)),
    unique_by=lambda slab: slab.name,
)


@given(slabs)
def test_every_cache_has_one_kind(found):
    """Largest first, the bytes add up, and the inode caches of all owners are all inode caches."""
    caches = classify(found, {}, 4096)
    assert sum(cache.size_bytes for cache in caches) == sum(slab.bytes(4096) for slab in found)
    assert [cache.size_bytes for cache in caches] == sorted((cache.size_bytes for cache in caches), reverse=True)
    owned = inodes_by_owner(caches)
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
    """The kind and the file system by the cache's name."""
    [cache] = classify([Slab(name, 1, 1, 1, 1, 1)], {}, 4096)
    assert (cache.kind, cache.owner) == (kind, owner)


def test_a_merged_dentry_cache_is_found_by_its_other_names():
    """Only where no cache is listed as dentry."""
    merged = {"filp": ("dentry",)}
    assert [cache.kind for cache in classify([Slab("filp", 1, 1, 1, 1, 1)], merged, 1)] == ["dentry"]
    both = [Slab("filp", 1, 1, 1, 1, 1), Slab("dentry", 1, 1, 1, 2, 1)]
    assert [cache.kind for cache in classify(both, merged, 1)] == ["dentry", "other"]


def test_memory_beside_an_inode_is_no_second_inode():
    """lsm_inode_cache holds one object per inode."""
    caches = classify([Slab("lsm_inode_cache", 9, 9, 1, 1, 1), Slab("ext4_inode_cache", 5, 6, 1, 1, 1)], {}, 1)
    assert count_inodes(caches) == 5
