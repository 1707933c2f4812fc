"""The walk over all cgroups of a controller."""

from __future__ import annotations

import pytest

from opskit.host import Host
from opskit.proc.cgroup.sweep import all_cgroups, cgroups_of
from opskit.proc.cgroup.tree import is_at_or_below
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


def test_the_cgroups_of_some_processes_and_their_members(machine):
    """Each once, from the process's own up; members of nested ones count, those of other PID namespaces (0) do not."""
    at = "sys/fs/cgroup/pids"
    files = {f"{at}/release_agent": "\n", f"{at}/x/cgroup.procs": "7\n0\n", f"{at}/x/y/cgroup.procs": "8\n"}
    fs = machine(V1, {**files, "proc/7/cgroup": "1:pids:/x\n", "proc/8/cgroup": "1:pids:/x/y\n"})
    found = {each.path: each for each in cgroups_of(fs, (7, 8, 9), "pids")}
    assert sorted(found) == ["/", "/x", "/x/y"]
    assert [(each.path, each.pids(fs)) for each in found["/x"].with_those_below(fs)] == [("/x", [7]), ("/x/y", [8])]


@pytest.mark.parametrize(
    ("path", "top", "is_so"), [("/a", "/a", True), ("/a/b", "/a", True), ("/a", "/", True), ("/ab", "/a", False)]
)
def test_nested_paths(path, top, is_so):
    """Of a path, not of its letters."""
    assert is_at_or_below(path, top) is is_so
