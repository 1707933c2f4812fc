"""Slab memory of cgroups, in trees of v1 and v2."""

from __future__ import annotations

from opskit.proc.cgroup.slab import read_cgroup_slabs
from opskit.proc.files.slabinfo import Slab
from opskit.proc.fs import ProcFS

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
V1 = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
STAT = "anon 1\nslab_reclaimable {}\nslab_unreclaimable 7\n"


def fs_of(root):
    return ProcFS(f"{root}/proc", str(root))


def test_v2_tells_reclaimable_slab_per_cgroup(tree):
    """memory.stat, memory.current and memory.max of every cgroup below the root."""
    top = "sys/fs/cgroup"
    root = tree(
        {
            "proc/1/mountinfo": V2,
            f"{top}/cgroup.controllers": "cpu memory pids\n",
            f"{top}/memory.stat": STAT.format(999),
            f"{top}/a/memory.stat": STAT.format(300),
            f"{top}/a/memory.current": "400\n",
            f"{top}/a/memory.max": "max\n",
            f"{top}/a/memory.reclaim": "",
            f"{top}/a/b c/memory.stat": STAT.format(200),
            f"{top}/a/b c/memory.max": "512\n",
        }
    )
    found = {group.path: group for group in read_cgroup_slabs(fs_of(root))}
    assert list(found) == ["/a", "/a/b c"]
    assert (found["/a"].slab_reclaimable_bytes, found["/a"].usage_bytes, found["/a"].limit_bytes) == (300, 400, None)
    assert found["/a"].reclaims
    assert not found["/a/b c"].reclaims
    assert found["/a/b c"].limit_bytes == 512
    assert found["/a/b c"].usage_bytes is None


def test_in_a_container_its_own_cgroup_counts(tree):
    """With a cgroup namespace the top of the mount is the container, and has a type."""
    root = tree(
        {
            "proc/1/mountinfo": V2,
            "sys/fs/cgroup/cgroup.controllers": "memory\n",
            "sys/fs/cgroup/cgroup.type": "domain\n",
            "sys/fs/cgroup/memory.stat": STAT.format(999),
        }
    )
    assert [(group.path, group.slab_reclaimable_bytes) for group in read_cgroup_slabs(fs_of(root))] == [("/", 999)]


def test_v1_tells_an_upper_bound_and_where_the_kernel_fills_it_the_caches(tree):
    """kmem.usage_in_bytes bounds it; kmem.slabinfo was filled up to Linux 5.8."""
    top = "sys/fs/cgroup/memory"
    caches = "slabinfo - version: 2.1\n# name\ndentry 10 21 192 21 1 : tunables 0 0 0 : slabdata 1 1 0\n"
    root = tree(
        {
            "proc/1/mountinfo": V1,
            f"{top}/release_agent": "\n",
            f"{top}/old/memory.kmem.usage_in_bytes": "8192\n",
            f"{top}/old/memory.kmem.slabinfo": caches,
            f"{top}/old/memory.limit_in_bytes": "9223372036854771712\n",
            f"{top}/new/memory.kmem.usage_in_bytes": "4096\n",
            f"{top}/new/memory.kmem.slabinfo": "",
            f"{top}/new/memory.limit_in_bytes": "1048576\n",
        }
    )
    new, old = read_cgroup_slabs(fs_of(root))
    assert (new.kernel_bytes, new.caches, new.limit_bytes, new.slab_reclaimable_bytes) == (4096, (), 1048576, None)
    assert (old.kernel_bytes, old.caches, old.limit_bytes) == (8192, (Slab("dentry", 10, 21, 192, 1, 1),), None)


def test_no_memory_controller_no_cgroups(tree):
    """v2 without the memory controller, and a tree without any cgroup mount."""
    root = tree({"proc/1/mountinfo": V2, "sys/fs/cgroup/cgroup.controllers": "cpu\n"})
    assert read_cgroup_slabs(fs_of(root)) == []
    assert read_cgroup_slabs(fs_of(root / "nowhere")) == []
