"""Where a process sits in the cgroup trees: v1, v2, hybrid, namespaces, partial mounts."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.cgroup import ancestry, parse_cgroup
from opskit.proc.fs import ProcFS

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
V1 = "35 31 0:32 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"


def found(root, controller="pids", proc="proc"):
    return ancestry(ProcFS(f"{root}/{proc}", str(root)), 4242, controller)


def paths(ancestry_):
    return [level.path for level in ancestry_.levels]


def test_v2_from_the_process_up_to_the_machines_root(tree):
    """The root has no cgroup.type."""
    root = tree(
        {
            "proc/1/mountinfo": V2,
            "proc/4242/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu pids\n",
            "sys/fs/cgroup/a/cgroup.type": "domain\n",
            "sys/fs/cgroup/a/b/cgroup.procs": "4242\n",
        }
    )
    result = found(root)
    assert paths(result) == ["/a/b", "/a", "/"]
    assert result.complete
    assert [level.directory for level in result.levels] == ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]
    assert found(root, "memory") is None, "the controller is not there"


def test_hybrid_takes_the_hierarchy_that_has_the_controller(tree):
    """A v1 hierarchy of pids, v2 without it."""
    root = tree(
        {
            "proc/1/mountinfo": V1 + V2.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified"),
            "proc/4242/cgroup": "5:pids:/p\n0::/u\n",
            "sys/fs/cgroup/pids/release_agent": "",
            "sys/fs/cgroup/pids/p/pids.max": "3\n",
            "sys/fs/cgroup/unified/cgroup.controllers": "memory\n",
            "sys/fs/cgroup/unified/u/memory.max": "3\n",
        }
    )
    assert paths(found(root)) == ["/p", "/"]
    assert found(root).levels[0].version == 1
    assert found(root).complete
    assert found(root, "memory").levels[0].version == 2


def test_a_container_sees_its_own_part_of_a_v1_hierarchy(tree):
    """The mount shows /docker/ID: what is above cannot be seen."""
    root = tree(
        {
            "proc/1/mountinfo": V1.replace(" / /sys", " /docker/0123 /sys"),
            "proc/4242/cgroup": "5:pids:/docker/0123/app\n",
            "sys/fs/cgroup/pids/pids.max": "9\n",
            "sys/fs/cgroup/pids/app/pids.max": "3\n",
        }
    )
    result = found(root)
    assert paths(result) == ["/docker/0123/app", "/docker/0123"]
    assert [level.directory for level in result.levels] == ["/sys/fs/cgroup/pids/app", "/sys/fs/cgroup/pids"]
    assert not result.complete


def test_of_several_mounts_the_one_that_shows_it(tree):
    """A hierarchy may be mounted in parts, and a mount may have nothing in it."""
    root = tree(
        {
            "proc/1/mountinfo": V1.replace(" / /sys/fs/cgroup/pids", " /other /mnt/other")
            + V1.replace("/sys/fs/cgroup/pids", "/mnt/empty")
            + V1,
            "proc/4242/cgroup": "5:pids:/p\n",
            "mnt/other/pids.max": "1\n",
            "sys/fs/cgroup/pids/p/pids.max": "3\n",
        }
    )
    assert found(root).levels[0].directory == "/sys/fs/cgroup/pids/p"


@pytest.mark.parametrize("path", ["/../other", "/.."])
def test_outside_our_cgroup_namespace(tree, path):
    """A path that leads out of it tells nothing."""
    root = tree(
        {"proc/1/mountinfo": V2, "proc/4242/cgroup": f"0::{path}\n", "sys/fs/cgroup/cgroup.controllers": "pids\n"}
    )
    assert found(root) is None


def test_the_hosts_mount_seen_from_a_cgroup_namespace(tree):
    """A debugging pod: the host's tree is mounted, and paths are told from inside the namespace."""
    root = tree(
        {
            "proc/1/mountinfo": V2.replace(" / /sys", " /../.. /sys"),
            "proc/4242/cgroup": "0::/../../system.slice/app.service\n",
            "sys/fs/cgroup/cgroup.controllers": "pids\n",
            "sys/fs/cgroup/system.slice/app.service/pids.max": "3\n",
        }
    )
    assert paths(found(root)) == ["/system.slice/app.service", "/system.slice", "/"]
    assert found(root).complete


def test_our_own_place_is_searched_for_where_it_is_not_told(tree):
    """From inside, our own cgroup is /: it is the one, as far down as the namespace's root is, that has the process."""
    root = tree(
        {
            "proc/1/mountinfo": V2.replace(" / /sys", " /../.. /sys"),
            "proc/4242/cgroup": "0::/\n",
            "sys/fs/cgroup/cgroup.controllers": "pids\n",
            "sys/fs/cgroup/a/b/cgroup.procs": "7\n",
            "sys/fs/cgroup/a/c/cgroup.procs": "1\n4242\n",
        }
    )
    assert paths(found(root)) == ["/a/c", "/a", "/"]


def test_without_mounts_nothing_is_to_be_seen(tree):
    """No cgroupfs, or no mountinfo."""
    root = tree({"proc/1/mountinfo": "1 1 0:1 / / rw - ext4 /dev/vda rw\n", "proc/4242/cgroup": "0::/a\n"})
    assert found(root) is None
    with pytest.raises(FileNotFoundError):
        ancestry(ProcFS(f"{root}/proc", str(root)), 1, "pids")


def test_names_with_odd_characters(tree):
    """Systemd escapes with backslashes, and colons are allowed."""
    root = tree(
        {
            "proc/1/mountinfo": V2,
            "proc/4242/cgroup": "0::/system.slice/a\\x2db:c d.service\n",
            "sys/fs/cgroup/cgroup.controllers": "pids\n",
            "sys/fs/cgroup/system.slice/a\\x2db:c d.service/pids.max": "3\n",
        }
    )
    assert found(root).levels[0].number(ProcFS(f"{root}/proc", str(root)), "pids.max") == 3


@pytest.mark.parametrize("text", ["x", "1:pids", "a:pids:/", "1:pids:no-slash"])
def test_garbage_is_refused(text):
    """With its line."""
    with pytest.raises(BadInput, match="cgroup:1"):
        parse_cgroup(text)
