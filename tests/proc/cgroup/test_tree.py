"""Where a process sits in the cgroup trees: v1, v2, hybrid, namespaces, partial mounts."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from opskit.errors import BadInput
from opskit.proc.cgroup.tree import (
    Level,
    Membership,
    ancestry,
    cgroup_mounts,
    controller_root,
    is_machine_root,
    levels_of,
    parse_cgroup,
)
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
    """A path that leads out of it has no levels."""
    root = tree(
        {"proc/1/mountinfo": V2, "proc/4242/cgroup": f"0::{path}\n", "sys/fs/cgroup/cgroup.controllers": "pids\n"}
    )
    assert found(root) is None


def test_the_hosts_mount_seen_from_a_cgroup_namespace(tree):
    """A debugging pod: the host's tree is mounted, and paths are relative to the namespace."""
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


def test_a_cgroup_with_an_unknown_path_is_searched_for(tree):
    """From inside, our own cgroup is /: the one at the depth of the namespace's root that contains the process."""
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


def fs_of(root):
    return ProcFS(f"{root}/proc", str(root))


def level_at(directory="/sys/fs/cgroup/a", path="/a", version=2):
    return Level(path, directory, version)


@pytest.mark.parametrize(
    ("text", "number"),
    [("5\n", 5), ("0\n", 0), ("-1\n", -1), ("9223372036854771712\n", 9223372036854771712), ("max\n", None), ("", None),
     ("5 6\n", None), ("5x\n", None), ("x5\n", None), ("-\n", None)],
)  # fmt: skip
def test_a_file_of_one_number(tree, text, number):
    """The number, or None for `max` and for other text."""
    fs = fs_of(tree({"sys/fs/cgroup/a/pids.max": text}))
    assert level_at().number(fs, "pids.max") == number


def test_a_file_of_a_cgroup_is_stripped_and_may_be_absent(tree):
    """None where it is missing, a directory, or not readable."""
    fs = fs_of(tree({"sys/fs/cgroup/a/cgroup.type": " domain\n", "sys/fs/cgroup/a/b/x": ""}))
    assert level_at().load(fs, "cgroup.type") == "domain"
    assert [level_at().load(fs, name) for name in ("absent", "b")] == [None, None]
    assert level_at().number(fs, "absent") is None
    assert [level_at().has(fs, name) for name in ("cgroup.type", "b", "absent")] == [True, True, False]


@pytest.fixture
def open_tree():
    """As `tree`, in a directory that other users may enter."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        root.chmod(0o755)

        def write(files):
            for name, content in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(content)
            return root

        yield write


def test_what_must_not_be_read_is_there_all_the_same(open_tree, as_user):
    """`has` needs no right to read."""
    root = open_tree({"sys/fs/cgroup/a/memory.max": "5\n"})
    (root / "sys/fs/cgroup/a/memory.max").chmod(0o000)
    fs = fs_of(root)
    seen = as_user(65534, lambda: (level_at().has(fs, "memory.max"), level_at().number(fs, "memory.max")))
    assert seen == (True, None)


def test_a_table_leaves_out_what_is_no_pair_of_key_and_number(tree):
    """memory.stat, cpu.stat, pids.events: lines of another form are skipped."""
    text = "anon 4096\nfile 0\nlone\nkey max\nkey2 1 2\n\nkey3 -1\n12 34\nkey4 5x\nlast 18446744073709551615"
    fs = fs_of(tree({"sys/fs/cgroup/a/memory.stat": text, "sys/fs/cgroup/a/empty": ""}))
    assert level_at().table(fs, "memory.stat") == {"anon": 4096, "file": 0, "12": 34, "last": 18446744073709551615}
    assert level_at().table(fs, "empty") == {}
    assert level_at().table(fs, "absent") == {}


def test_the_cgroups_right_below(tree):
    """Only directories, by name; with path, directory and version. Empty where the cgroup is gone."""
    files = {f"sys/fs/cgroup/a/{name}/cgroup.procs": "" for name in ("z.slice", "b", "b/deeper")}
    fs = fs_of(tree(files | {"sys/fs/cgroup/a/cgroup.procs": ""}))
    assert level_at().children(fs) == [
        Level("/a/b", "/sys/fs/cgroup/a/b", 2),
        Level("/a/z.slice", "/sys/fs/cgroup/a/z.slice", 2),
    ]
    top = Level("/", "/sys/fs/cgroup", 1).children(fs)
    assert top == [Level("/a", "/sys/fs/cgroup/a", 1)]
    assert level_at("/sys/fs/cgroup/gone", "/gone").children(fs) == []


def test_each_line_of_proc_pid_cgroup():
    """Hierarchies by number, controllers by name, a v2 line without any; a path may have colons."""
    text = "9:name=systemd:/system.slice/app.service\n4:cpu,cpuacct:/\n1:pids:/a:b\n0::/x\n"
    assert parse_cgroup(text) == [
        Membership(9, ("name=systemd",), "/system.slice/app.service"),
        Membership(4, ("cpu", "cpuacct"), "/"),
        Membership(1, ("pids",), "/a:b"),
        Membership(0, (), "/x"),
    ]
    assert parse_cgroup("") == []


@pytest.mark.parametrize("line", ["x", "1:pids", "a:pids:/", ":pids:/", "1:pids:no-slash", "-1::/", "1.5::/", ""])
def test_a_malformed_line_is_reported_with_its_number_and_text(line):
    """The third one of a file, of which the rest is right."""
    with pytest.raises(BadInput) as caught:
        parse_cgroup(f"4:cpu:/\n0::/\n{line}\n3:pids:/\n")
    assert str(caught.value) == f"cgroup:3: not `number:controllers:path`: {line!r}"


def test_only_the_hierarchy_of_the_controller_is_looked_at(tree):
    """Other v1 hierarchies, mounted before it, have the same cgroups; so may v2."""
    root = tree(
        {
            "proc/1/mountinfo": V1.replace("pids", "memory") + V2.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified") + V1,
            "proc/4242/cgroup": "6:memory:/p\n5:pids:/p\n0::/p\n",
            "sys/fs/cgroup/memory/p/cgroup.procs": "4242\n",
            "sys/fs/cgroup/pids/p/cgroup.procs": "4242\n",
            "sys/fs/cgroup/unified/p/cgroup.procs": "4242\n",
            "sys/fs/cgroup/unified/cgroup.controllers": "\n",
        }
    )  # fmt: skip
    assert found(root).levels[0] == Level("/p", "/sys/fs/cgroup/pids/p", 1)
    assert found(root, "memory").levels[0] == Level("/p", "/sys/fs/cgroup/memory/p", 1)
    assert found(root, "cpu") is None
    # "" is v2's own, which has no controller here but has pressure.
    assert found(root, "").levels[0] == Level("/p", "/sys/fs/cgroup/unified/p", 2)


def test_a_container_of_v2_is_not_complete(tree):
    """The topmost visible cgroup has a type, which the machine's root does not have."""
    files = {
        "proc/1/mountinfo": V2,
        "proc/4242/cgroup": "0::/a\n",
        "sys/fs/cgroup/cgroup.controllers": "pids\n",
        "sys/fs/cgroup/a/cgroup.procs": "4242\n",
    }
    assert found(tree(files)).complete
    result = found(tree({"sys/fs/cgroup/cgroup.type": "domain\n"}))
    assert (paths(result), result.complete) == (["/a", "/"], False)


def test_a_removed_cgroup_is_not_replaced_by_its_parent(tree):
    """Its directory is not there, while those above it are."""
    root = tree(
        {
            "proc/1/mountinfo": V2,
            "proc/4242/cgroup": "0::/a/gone\n",
            "sys/fs/cgroup/cgroup.controllers": "pids\n",
            "sys/fs/cgroup/a/cgroup.procs": "4242\n",
        }
    )
    assert found(root) is None


def test_a_cgroup_whose_directory_must_not_be_listed(open_tree, as_user):
    """It is there: its files can be reached by name."""
    root = open_tree(
        {
            "proc/1/mountinfo": V2,
            "proc/4242/cgroup": "0::/a\n",
            "sys/fs/cgroup/cgroup.controllers": "pids\n",
            "sys/fs/cgroup/a/cgroup.procs": "4242\n",
        }
    )
    (root / "sys/fs/cgroup/a").chmod(0o711)
    assert as_user(65534, lambda: paths(found(root))) == ["/a", "/"]


def test_a_mount_of_a_part_shows_that_part_alone(tree):
    """/docker/01 is not above /docker/0123; it is above itself and what is below it."""
    files = {
        "proc/1/mountinfo": V1.replace(" / /sys", " /docker/01 /sys"),
        "sys/fs/cgroup/pids/pids.max": "9\n",
        "sys/fs/cgroup/pids/23/pids.max": "3\n",
        "sys/fs/cgroup/pids/app/pids.max": "3\n",
    }
    for path, expected in (
        ("/docker/0123", None),
        ("/docker/01", ["/docker/01"]),
        ("/docker/01/app", ["/docker/01/app", "/docker/01"]),
        ("/docker", None),
    ):
        result = found(tree(files | {"proc/4242/cgroup": f"5:pids:{path}\n"}))
        assert (result and paths(result)) == expected


def test_the_mounts_are_those_of_whom_the_tree_belongs_to(tree):
    """Of another root its init's, else its reader's, else the process's own; one without any cgroup is skipped."""
    nothing = "1 1 0:1 / / rw - ext4 /dev/vda rw\n"
    files = {
        "proc/4242/cgroup": "0::/a\n",
        "proc/4242/mountinfo": V2.replace("/sys/fs/cgroup", "/of-it"),
        "of-it/a/x": "",
        "of-it/cgroup.controllers": "pids\n",
        "of-self/a/x": "",
        "of-self/cgroup.controllers": "pids\n",
        "of-init/a/x": "",
        "of-init/cgroup.controllers": "pids\n",
    }
    assert found(tree(files)).levels[0].directory == "/of-it/a"
    assert found(tree({"proc/1/mountinfo": nothing})).levels[0].directory == "/of-it/a"
    tree({"proc/self/mountinfo": V2.replace("/sys/fs/cgroup", "/of-self")})
    assert found(tree({})).levels[0].directory == "/of-self/a"
    tree({"proc/1/mountinfo": "30 23 garbage cgroup\n"})
    assert found(tree({})).levels[0].directory == "/of-self/a"
    root = tree({"proc/1/mountinfo": V2.replace("/sys/fs/cgroup", "/of-init") + nothing})
    assert found(root).levels[0].directory == "/of-init/a"
    assert [mount.mount_point for mount in cgroup_mounts(fs_of(root), 4242)] == ["/of-init"]


def test_of_this_machine_the_mounts_are_our_own():
    """Not those of init, which may differ; compared with the kernel's data about ourselves."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        points = [
            line.split()[4] for line in file if line.split()[line.split().index("-") + 1] in ("cgroup", "cgroup2")
        ]
    assert [mount.mount_point for mount in cgroup_mounts(ProcFS(), os.getpid())] == points


def test_our_own_place_is_where_our_very_pid_is(tree):
    """As deep as the namespace's root lies, no deeper and no higher; 42421 is another process."""
    root = tree(
        {
            "proc/1/mountinfo": V2.replace(" / /sys", " /../.. /sys"),
            "proc/4242/cgroup": "0::/app\n",
            "sys/fs/cgroup/cgroup.controllers": "pids\n",
            "sys/fs/cgroup/cgroup.procs": "4242\n",
            "sys/fs/cgroup/a/cgroup.procs": "4242\n",
            "sys/fs/cgroup/a/app/cgroup.procs": "4242\n",
            "sys/fs/cgroup/a/b/app/cgroup.procs": "42421\n",
            "sys/fs/cgroup/a/c/cgroup.procs": "4242\n",
            "sys/fs/cgroup/a/d/app/cgroup.procs": "7\n4242\n9\n",
        }
    )
    assert paths(found(root)) == ["/a/d/app", "/a/d", "/a", "/"]
    tree({"sys/fs/cgroup/a/d/app/cgroup.procs": "7\n"})
    assert found(root) is None


def test_a_known_path_is_not_searched_for(tree):
    """A mount of the whole tree has no `..`: a path that it does not show is not found by the PID."""
    root = tree(
        {
            "proc/1/mountinfo": V2.replace(" / /sys", " /docker /sys"),
            "proc/4242/cgroup": "0::/\n",
            "sys/fs/cgroup/cgroup.controllers": "pids\n",
            "sys/fs/cgroup/cgroup.procs": "4242\n",
        }
    )
    assert found(root) is None


def test_without_a_pid_nothing_is_searched_for(tree):
    """Memberships that were read for many processes at once."""
    root = tree(
        {
            "proc/1/mountinfo": V2.replace(" / /sys", " /../.. /sys"),
            "sys/fs/cgroup/cgroup.controllers": "pids\n",
            "sys/fs/cgroup/a/c/cgroup.procs": "4242\n",
        }
    )
    fs = fs_of(root)
    assert levels_of(fs, parse_cgroup("0::/\n"), "pids", cgroup_mounts(fs, 4242)) is None
    assert levels_of(fs, parse_cgroup("0::/\n"), "pids", cgroup_mounts(fs, 4242), 4242)[0].path == "/a/c"
    assert levels_of(fs, [], "pids", cgroup_mounts(fs, 4242), 4242) is None


def test_the_top_of_a_controller(tree):
    """v1's hierarchy before v2, and v2 only with the controller; None where neither is mounted."""
    hybrid = V1.replace("pids", "memory") + V1 + V2.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
    root = tree({"proc/1/mountinfo": hybrid, "sys/fs/cgroup/unified/cgroup.controllers": "cpu io\n"})
    fs = fs_of(root)
    assert controller_root(fs, "pids") == Level("/", "/sys/fs/cgroup/pids", 1)
    assert controller_root(fs, "cpu") == Level("/", "/sys/fs/cgroup/unified", 2)
    assert controller_root(fs, "hugetlb") is None
    assert controller_root(fs, "c") is None
    tree(
        {"proc/1/mountinfo": V2.replace(" / /sys", " /docker/0123 /sys"), "sys/fs/cgroup/cgroup.controllers": "pids\n"}
    )
    assert controller_root(fs, "pids") == Level("/docker/0123", "/sys/fs/cgroup", 2)
    tree({"proc/1/mountinfo": "1 1 0:1 / / rw - ext4 /dev/vda rw\n"})
    assert controller_root(fs, "pids") is None


def test_the_machines_root_is_known_by_its_files(tree):
    """release_agent is in the true root of a v1 hierarchy alone; cgroup.type in every v2 cgroup but the root."""
    fs = fs_of(tree({"one/release_agent": "", "two/cgroup.type": "domain\n", "three/x": ""}))
    seen = {
        (place, version): is_machine_root(fs, Level("/", f"/{place}", version))
        for place in ("one", "two", "three")
        for version in (1, 2)
    }
    assert [key for key, is_root in seen.items() if is_root] == [("one", 1), ("one", 2), ("three", 2)]
