"""Memory limits, CPU quotas and frozen cgroups of v1 and v2, the tightest on the way up."""

from __future__ import annotations

import pytest

from opskit.proc.cgroup.limits import CpuLimit, MemoryLimit, cpu_limit, frozen_by, memory_limit
from opskit.proc.cgroup.tree import cgroup_mounts, levels_of, parse_cgroup
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
    assert cpu_limit(fs, levels(v2, "cpu")[1]) == CpuLimit("/pods/pod1", 1.5, 1000, 340, 61.2)
    assert frozen_by(fs, memory) == "/pods/pod1"


def test_v1(v1):
    fs, memory = levels(v1, "memory")
    assert memory_limit(fs, memory) == MemoryLimit("/docker/x", 512 << 20, 500_000_000)
    assert cpu_limit(fs, levels(v1, "cpu")[1]) == CpuLimit("/docker/x", 0.5, 10, 5, 2.5)
    assert frozen_by(fs, levels(v1, "freezer")[1]) == "/docker"


def test_no_limit_is_told_from_not_known(tree):
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
