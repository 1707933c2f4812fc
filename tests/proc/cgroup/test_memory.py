"""Memory of cgroups: v1 and v2, each level, what is reclaimable, what is left, swap."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cgroups import new_cgroup

from opskit.proc.cgroup.memory import HugeLimit, MemoryGroup, huge_limits, memory_groups, swap_within, tightest
from opskit.proc.cgroup.tree import visible_levels
from opskit.proc.fs import ProcFS

MIB = 1 << 20
V2_MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
V1_MOUNTS = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "36 31 0:33 / /sys/fs/cgroup/hugetlb rw - cgroup cgroup rw,hugetlb\n"
)
NONE = "9223372036854771712\n"
TOP = "sys/fs/cgroup"


def groups_of(root, controller="memory", find=memory_groups):
    fs = ProcFS(f"{root}/proc", str(root))
    return find(fs, visible_levels(fs, 7, controller)[0])


def v2(tree, files, path="/pod/app"):
    controllers = {f"{TOP}/cgroup.controllers": "cpu memory\n"}
    return tree({"proc/7/cgroup": f"0::{path}\n", "proc/self/mountinfo": V2_MOUNT, **controllers, **files})


def v1(tree, files, path="/docker/x"):
    lines = f"4:memory:{path}\n3:hugetlb:{path}\n"
    return tree({"proc/7/cgroup": lines, "proc/self/mountinfo": V1_MOUNTS, **files})


STAT_V2 = (
    f"anon {200 * MIB}\nfile {90 * MIB}\nkernel {12 * MIB}\nkernel_stack {MIB}\nsock {MIB}\nshmem {30 * MIB}\n"
    f"inactive_file {40 * MIB}\nactive_file {15 * MIB}\nunevictable {5 * MIB}\nslab_reclaimable {4 * MIB}\nslab_unreclaimable {2 * MIB}\n"
)
APP_V2 = {
    f"{TOP}/pod/app/memory.max": f"{400 * MIB}\n",
    f"{TOP}/pod/app/memory.high": f"{350 * MIB}\n",
    f"{TOP}/pod/app/memory.current": f"{303 * MIB}\n",
    f"{TOP}/pod/app/memory.peak": f"{399 * MIB}\n",
    f"{TOP}/pod/app/memory.stat": STAT_V2,
    f"{TOP}/pod/app/memory.swap.current": f"{10 * MIB}\n",
    f"{TOP}/pod/app/memory.swap.max": f"{60 * MIB}\n",
    f"{TOP}/pod/app/memory.events": "low 0\nhigh 12\nmax 3\noom 1\noom_kill 2\noom_group_kill 0\n",
    f"{TOP}/pod/app/memory.oom.group": "1\n",
    f"{TOP}/pod/memory.max": "max\n",
    f"{TOP}/pod/memory.high": "max\n",
    f"{TOP}/pod/memory.current": f"{900 * MIB}\n",
}


def test_v2(tree):
    """Page cache on the lists and reclaimable slab go first; unevictable page cache and shared memory stay."""
    app, pod = groups_of(v2(tree, APP_V2))
    assert app == MemoryGroup(
        "/pod/app", 2, 400 * MIB, 350 * MIB, 303 * MIB, 399 * MIB, 200 * MIB, 30 * MIB, 55 * MIB, 9 * MIB,
        (303 - 55 - 4) * MIB, 10 * MIB, 60 * MIB, 2, group_kill=True,
    )  # fmt: skip
    assert (app.left_bytes, app.high_left_bytes) == (156 * MIB, 106 * MIB)
    assert (pod.limit_bytes, pod.high_bytes, pod.left_bytes) == (None, None, None)  # max is no limit
    assert pod.pinned_bytes is None  # without memory.stat nobody knows what is page cache


def test_v2_before_linux_5_18_has_the_parts_of_kernel_memory(tree):
    stat = (
        f"slab_unreclaimable {2 * MIB}\nkernel_stack {MIB}\nsock {MIB}\npagetables 4096\nslab_reclaimable {9 * MIB}\n"
    )
    (app,) = groups_of(v2(tree, {f"{TOP}/pod/app/memory.current": "5\n", f"{TOP}/pod/app/memory.stat": stat}))
    assert app.kernel_bytes == 4 * MIB + 4096
    assert app.limit_bytes is None


def test_the_root_of_v2_has_no_memory_files(tree):
    """And neither has a cgroup whose parent does not delegate the controller: its memory counts above."""
    files = {**APP_V2, f"{TOP}/pod/app/threads/cgroup.procs": "7\n", f"{TOP}/memory.stat": "anon 5\n"}
    assert [group.path for group in groups_of(v2(tree, files, "/pod/app/threads"))] == ["/pod/app", "/pod"]


STAT_V1 = (
    f"cache 5\nrss 5\ntotal_cache {90 * MIB}\ntotal_rss {200 * MIB}\ntotal_shmem {30 * MIB}\ntotal_swap {10 * MIB}\n"
    f"inactive_file 7\nactive_file 7\ntotal_inactive_file {40 * MIB}\ntotal_active_file {15 * MIB}\ntotal_unevictable {5 * MIB}\n"
)


def test_v1_counts_the_cgroups_below(tree):
    """total_*; swap is what memsw allows above the limit; kernel memory has slab that may be reclaimable."""
    at = f"{TOP}/memory/docker/x"
    own, *above = groups_of(
        v1(tree, {
            f"{at}/memory.limit_in_bytes": f"{400 * MIB}\n", f"{at}/memory.usage_in_bytes": f"{303 * MIB}\n",
            f"{at}/memory.max_usage_in_bytes": f"{399 * MIB}\n", f"{at}/memory.stat": STAT_V1,
            f"{at}/memory.kmem.usage_in_bytes": f"{12 * MIB}\n", f"{at}/memory.memsw.limit_in_bytes": f"{460 * MIB}\n",
            f"{at}/memory.oom_control": "oom_kill_disable 1\nunder_oom 0\noom_kill 2\n", f"{at}/memory.swappiness": "60\n",
            f"{TOP}/memory/docker/memory.limit_in_bytes": NONE, f"{TOP}/memory/docker/memory.usage_in_bytes": "5000\n",
            f"{TOP}/memory/memory.limit_in_bytes": NONE, f"{TOP}/memory/memory.usage_in_bytes": "90000\n",
        })
    )  # fmt: skip
    assert own == MemoryGroup(
        "/docker/x", 1, 400 * MIB, None, 303 * MIB, 399 * MIB, 200 * MIB, 30 * MIB, 55 * MIB, 12 * MIB,
        (303 - 55) * MIB, 10 * MIB, 60 * MIB, 2, kills_disabled=True, slab_unknown=True,
    )  # fmt: skip
    assert [(group.path, group.limit_bytes) for group in above] == [("/docker", None), ("/", None)]


@pytest.mark.parametrize(
    ("changes", "free", "left"),
    [
        ({}, 1000, 50),  # 60 of its own, 10 are used
        ({}, 20, 20),  # the machine has less
        ({"swap_limit_bytes": None}, 1000, 1000),
        ({"swap_limit_bytes": 0, "swap_bytes": 0}, 1000, 0),
        ({"swaps": False}, 1000, 0),  # swappiness 0
        ({"swap_limit_bytes": 5}, 1000, 0),  # lowered below its use
    ],
)
def test_what_may_move_to_swap(changes, free, left):
    group = MemoryGroup("/a", 2, 400, None, 300, None, 200, 0, 50, 10, 250, 10, 60, 0)._replace(**changes)
    assert group.swap_left_bytes(free) == left


@pytest.mark.parametrize(
    ("own", "parent", "left"),
    [
        ({}, {}, 1000),
        ({"swap_limit_bytes": 0}, {}, 0),  # a container without swap in a pod that has a limit
        ({}, {"swap_limit_bytes": 30, "swap_bytes": 10}, 20),  # of a slice
        ({"swaps": False}, {}, 0),
        ({"version": 1, "swap_limit_bytes": 0}, {"version": 1}, 1000),  # memsw: of its own level only
    ],
)
def test_swap_is_limited_at_each_level_of_v2(own, parent, left):
    group = MemoryGroup("/a/b", 2, None, None, 300, None, 200, 0, 50, 10, 250, 0, None, 0)
    assert swap_within([group._replace(**own), group._replace(path="/a", **parent)], 1000) == left
    assert swap_within([], 1000) == 1000


def test_the_tightest_is_by_what_is_left_and_not_by_the_limit():
    """A larger limit that many share may leave less; swap counts; one without a limit, or of unknown use, is none."""
    own = MemoryGroup("/a/b", 2, 400, None, 300, None, 200, 0, 50, 10, 250, 0, 0, 0)
    parent = own._replace(path="/a", limit_bytes=1000, pinned_bytes=900)
    assert tightest([own, parent]) is parent
    assert tightest([own, parent._replace(swap_limit_bytes=None)], 100) is own
    assert tightest([own._replace(limit_bytes=None), parent._replace(pinned_bytes=None)]) is None
    assert own._replace(pinned_bytes=500).left_bytes == 0


@pytest.mark.parametrize("damaged", ["", "max 5\n", "-1\n", "9" * 30, "\0"])
def test_a_damaged_limit_is_none(tree, damaged):
    files = {**APP_V2, f"{TOP}/pod/app/memory.max": damaged, f"{TOP}/pod/app/memory.stat": f"anon\n{damaged}\nanon x\n"}
    app = groups_of(v2(tree, files))[0]
    assert (app.limit_bytes, app.anon_bytes, app.left_bytes) == (None, None, None)


def test_reserved_huge_pages_of_both_versions(tree):
    """Only those that are used or limited."""
    at = f"{TOP}/hugetlb/docker"
    one = v1(tree, {
        f"{at}/x/hugetlb.2MB.limit_in_bytes": f"{64 * MIB}\n", f"{at}/x/hugetlb.2MB.usage_in_bytes": "0\n",
        f"{at}/x/hugetlb.1GB.limit_in_bytes": NONE, f"{at}/x/hugetlb.1GB.usage_in_bytes": "0\n",
        f"{at}/hugetlb.2MB.limit_in_bytes": NONE, f"{at}/hugetlb.2MB.usage_in_bytes": f"{2 * MIB}\n",
    })  # fmt: skip
    assert groups_of(one, "hugetlb", huge_limits) == (
        HugeLimit("/docker/x", "2MB", 64 * MIB, 0),
        HugeLimit("/docker", "2MB", None, 2 * MIB),
    )


def test_reserved_huge_pages_of_v2(tree):
    files = {
        f"{TOP}/pod/app/hugetlb.2MB.max": "4194304\n",
        f"{TOP}/pod/app/hugetlb.2MB.current": "2097152\n",
        f"{TOP}/pod/app/hugetlb.2MB.rsvd.max": "max\n",
    }
    root = v2(tree, {**files, f"{TOP}/cgroup.controllers": "memory hugetlb\n"})
    assert groups_of(root, "hugetlb", huge_limits) == (HugeLimit("/pod/app", "2MB", 4 * MIB, 2 * MIB),)


_HOLD = """
import os, sys
held = b"x" * (40 << 20)
with open(sys.argv[1], "wb") as file: file.write(bytes(20 << 20)); os.fsync(file.fileno())
with open("/dev/shm/" + sys.argv[2], "wb") as file: file.write(bytes(10 << 20))
print("READY", flush=True); sys.stdin.read()
"""


def test_a_real_cgroup(tmp_path):
    """Anonymous memory, shared memory and page cache of a process are told apart, as they count at a kill."""
    name = f"opskit-test-{os.getpid()}"
    with new_cgroup("memory", name, "memory.limit_in_bytes memory.max") as place:
        limit = place / ("memory.limit_in_bytes" if (place / "memory.limit_in_bytes").exists() else "memory.max")
        limit.write_text(str(200 * MIB))
        enter = ("sh", "-c", 'echo $$ > "$0" && exec "$@"', f"{place}/cgroup.procs")
        command = [*enter, sys.executable, "-c", _HOLD, str(tmp_path / "file"), name]
        try:
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                try:
                    assert process.stdout.readline() == b"READY\n"
                    fs = ProcFS()
                    own, *_ = memory_groups(fs, visible_levels(fs, process.pid, "memory")[0])
                finally:
                    process.stdin.close()
        finally:
            if os.path.exists(f"/dev/shm/{name}"):
                os.unlink(f"/dev/shm/{name}")
    assert own.limit_bytes == 200 * MIB
    assert 40 * MIB <= own.anon_bytes <= 60 * MIB
    assert own.shmem_bytes == 10 * MIB
    assert 19 * MIB <= own.cache_bytes <= 40 * MIB
    assert own.usage_bytes - own.cache_bytes >= own.pinned_bytes >= own.anon_bytes + own.shmem_bytes - MIB
    assert own.left_bytes == 200 * MIB - own.pinned_bytes
