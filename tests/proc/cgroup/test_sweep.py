"""The walk over all cgroups of a controller."""

from __future__ import annotations

import pytest

from opskit.host import Host
from opskit.proc.cgroup.sweep import all_cgroups
from opskit.proc.kept_reads import KeptReads

MOUNT = "31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
V1 = "31 23 0:27 / /sys/fs/cgroup/pids rw,nosuid shared:9 - cgroup cgroup rw,pids\n"


@pytest.fixture
def machine(tree):
    def make(mountinfo, files):
        root = tree({"proc/1/mountinfo": mountinfo, "proc/meminfo": "MemTotal: 1 kB\n", **files})
        return Host.at(str(root), None).fs

    return make


def test_parents_come_before_children_and_the_root_of_the_machine_is_left_out(machine):
    """v2: each cgroup below the root, with its path as the kernel names it."""
    at = "sys/fs/cgroup"
    fs = machine(
        MOUNT,
        {
            f"{at}/cgroup.controllers": "cpu pids\n",
            f"{at}/a.slice/b.service/pids.max": "7\n",
            f"{at}/c.service/pids.max": "8\n",
        },
    )
    assert [each.path for each in all_cgroups(fs, "pids")] == ["/a.slice", "/c.service", "/a.slice/b.service"]
    assert all_cgroups(fs, "memory") == ()


def test_the_root_of_a_containers_own_tree_counts(machine):
    """The topmost cgroup that a container sees has limits; v1's true root alone has release_agent."""
    files = {"sys/fs/cgroup/pids/pids.max": "7\n", "sys/fs/cgroup/pids/x/pids.max": "8\n"}
    assert [each.path for each in all_cgroups(machine(V1, files), "pids")] == ["/", "/x"]


def test_the_walk_is_kept_for_a_run(machine):
    """Several checks share it."""
    fs = machine(V1, {"sys/fs/cgroup/pids/release_agent": "\n", "sys/fs/cgroup/pids/x/pids.max": "8\n"})
    fs.kept = KeptReads()
    assert all_cgroups(fs, "pids") is all_cgroups(fs, "pids")
