"""Limits, CPU quotas, throttling and frozen cgroups of v1 and v2."""

from __future__ import annotations

import pytest

from opskit.proc.cgroup.limits import (
    CpuLimit,
    MemoryLimit,
    Throttling,
    cgroup_limits,
    cpu_limit,
    cpu_limits_of,
    frozen_by,
    limits_since,
    memory_limit,
    throttling,
)
from opskit.proc.cgroup.tree import cgroup_mounts, levels_of, parse_cgroup
from opskit.proc.files.limits import UNLIMITED
from opskit.proc.fs import ProcFS

V2_MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
V1_MOUNTS = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "36 31 0:33 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
)
NONE = "9223372036854771712\n"


def levels(root, controller):
    fs = ProcFS(f"{root}/proc", str(root))
    found = levels_of(fs, fs.load(parse_cgroup, 7, "cgroup"), controller, cgroup_mounts(fs, 7))
    return fs, found


@pytest.fixture
def v2(tree):
    base = "sys/fs/cgroup"
    return tree({
        "proc/7/cgroup": "0::/pods/pod1/app\n",
        "proc/self/mountinfo": V2_MOUNT,
        f"{base}/cgroup.controllers": "cpu memory pids\n",
        f"{base}/pods/memory.max": "max\n",
        f"{base}/pods/pod1/memory.max": "1073741824\n",
        f"{base}/pods/pod1/memory.current": "900000000\n",
        f"{base}/pods/pod1/app/memory.max": "2147483648\n",
        f"{base}/pods/cpu.max": "max 100000\n",
        f"{base}/pods/pod1/cpu.max": "150000 100000\n",
        f"{base}/pods/pod1/cpu.stat": "usage_usec 5\nnr_periods 1000\nnr_throttled 340\nthrottled_usec 61200000\n",
        f"{base}/pods/pod1/app/cpu.max": "max 100000\n",
        f"{base}/pods/cgroup.events": "populated 1\nfrozen 0\n",
        f"{base}/pods/pod1/cgroup.events": "populated 1\nfrozen 1\n",
    })  # fmt: skip


@pytest.fixture
def v1(tree):
    base = "sys/fs/cgroup"
    return tree({
        "proc/7/cgroup": "4:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n2:freezer:/docker/x\n1:name=systemd:/docker/x\n",
        "proc/self/mountinfo": V1_MOUNTS,
        f"{base}/memory/memory.limit_in_bytes": NONE,
        f"{base}/memory/docker/memory.limit_in_bytes": NONE,
        f"{base}/memory/docker/x/memory.limit_in_bytes": "536870912\n",
        f"{base}/memory/docker/x/memory.usage_in_bytes": "500000000\n",
        f"{base}/cpu,cpuacct/docker/cpu.cfs_quota_us": "-1\n",
        f"{base}/cpu,cpuacct/docker/cpu.cfs_period_us": "100000\n",
        f"{base}/cpu,cpuacct/docker/x/cpu.cfs_quota_us": "50000\n",
        f"{base}/cpu,cpuacct/docker/x/cpu.cfs_period_us": "100000\n",
        f"{base}/cpu,cpuacct/docker/x/cpu.stat": "nr_periods 10\nnr_throttled 5\nthrottled_time 2500000000\n",
        f"{base}/freezer/docker/x/freezer.state": "THAWED\n",
        f"{base}/freezer/docker/freezer.state": "FROZEN\n",
    })  # fmt: skip


def test_v2(v2):
    fs, memory = levels(v2, "memory")
    assert memory_limit(fs, memory) == MemoryLimit("/pods/pod1", 1 << 30, 900_000_000)
    assert cpu_limit(fs, levels(v2, "cpu")[1]) == CpuLimit(
        "/pods/pod1", 1.5, 1000, 340, 61.2, "/sys/fs/cgroup/pods/pod1"
    )
    assert frozen_by(fs, memory) == "/pods/pod1"


def test_v1(v1):
    fs, memory = levels(v1, "memory")
    assert memory_limit(fs, memory) == MemoryLimit("/docker/x", 512 << 20, 500_000_000)
    assert cpu_limit(fs, levels(v1, "cpu")[1]) == CpuLimit(
        "/docker/x", 0.5, 10, 5, 2.5, "/sys/fs/cgroup/cpu,cpuacct/docker/x", 1, 100_000
    )
    assert frozen_by(fs, levels(v1, "freezer")[1]) == "/docker"


def test_no_limit_is_not_unknown(tree):
    root = tree({
        "proc/7/cgroup": "0::/a\n",
        "proc/self/mountinfo": V2_MOUNT,
        "sys/fs/cgroup/cgroup.controllers": "memory\n",
        "sys/fs/cgroup/a/memory.max": "max\n",
    })  # fmt: skip
    fs, memory = levels(root, "memory")
    assert memory_limit(fs, memory) == MemoryLimit("/a", None, None)
    assert frozen_by(fs, memory) is None
    assert levels(root, "cpu")[1] is None  # the controller is not there: nothing is known


def test_every_cgroup_of_v2_with_its_use(v2):
    """From the process's own up."""
    fs = ProcFS(f"{v2}/proc", str(v2))
    own, pod, top = cgroup_limits(fs, 7, "memory").levels
    assert (own.limit, own.usage, pod.limit, pod.usage, top.limit) == (2 << 30, None, 1 << 30, 900_000_000, UNLIMITED)
    assert cgroup_limits(fs, 8, "memory").unknown == "/proc/8/cgroup is not in this proc tree"


def test_every_cgroup_of_v1_with_its_use(v1):
    """The same records, and the same spelling of no limit."""
    fs = ProcFS(f"{v1}/proc", str(v1))
    assert [limit.limit for limit in cgroup_limits(fs, 7, "memory").levels] == [512 << 20, UNLIMITED, UNLIMITED]
    assert [throttling(fs, level).throttled_s for level in levels(v1, "cpu")[1]] == [2.5, None, None]


def test_every_level_above_a_process_is_read(tree):
    """Its own cgroup may have no quota where its parent's has one."""
    root = tree(
        {
            "proc/1/mountinfo": V2_MOUNT,
            "proc/7/cgroup": "0::/pod/app\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
            "sys/fs/cgroup/pod/cpu.stat": "usage_usec 5\nnr_periods 100\nnr_throttled 40\nthrottled_usec 7\n",
            "sys/fs/cgroup/pod/cgroup.type": "domain\n",
            "sys/fs/cgroup/pod/app/cpu.stat": "usage_usec 5\nnr_periods 0\nnr_throttled 0\n",
            "sys/fs/cgroup/pod/app/cgroup.type": "domain\n",
        }
    )
    fs = ProcFS(f"{root}/proc", str(root))
    own, pod = (f"/sys/fs/cgroup/{name}" for name in ("pod/app", "pod"))
    assert cpu_limits_of(fs, 7) == (
        CpuLimit("/pod/app", None, 0, 0, None, own),
        CpuLimit("/pod", None, 100, 40, 7e-6, pod),
    )
    assert cpu_limits_of(fs, 8) is None


def test_the_periods_of_a_window():
    """Those of the cgroups that were there before; unknown where a counter ran backwards."""
    before = (CpuLimit("/pod/app", None, 0, 0), CpuLimit("/pod", 0.5, 100, 40, 2.0))
    after = (CpuLimit("/pod/new", 1.0, 9, 9), CpuLimit("/pod", 0.5, 140, 50, 2.5))
    assert limits_since(before, after) == (CpuLimit("/pod", 0.5, 40, 10, 0.5),)
    assert limits_since(after, before) == (CpuLimit("/pod", 0.5, None, None, None),)


def test_a_cgroup_that_counts_nothing(tree):
    fs, cpu = levels(
        tree({
            "proc/7/cgroup": "0::/a\n",
            "proc/self/mountinfo": V2_MOUNT,
            "sys/fs/cgroup/cgroup.controllers": "cpu\n",
            "sys/fs/cgroup/a/cpu.stat": "usage_usec 5\n",
        }),
        "cpu",
    )  # fmt: skip
    assert throttling(fs, cpu[0]) == Throttling()
