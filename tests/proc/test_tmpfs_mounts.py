"""Mounted tmpfs, in every mount namespace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ownmounts import own_mounts

from opskit.proc import tmpfs_mounts
from opskit.proc.fs import ProcFS
from opskit.proc.tmpfs_mounts import device_number, is_below, make_device, read_tmpfs_mounts
from opskit.proc.treefs import TreeFS

ROOT = Path(__file__).resolve().parents[2]


def mounts_of(pid, top):
    found = read_tmpfs_mounts(ProcFS(), [pid])
    return {
        mount.mount_point.removeprefix(str(top)): mount
        for mount in found.mounts
        if mount.mount_point.startswith(str(top))
    }


def test_device_numbers():
    """As stat has them, also large ones."""
    for major, minor in ((0, 27), (8, 300), (0xFFF, 0xFFFFF), (0x12345, 0x54321)):
        assert make_device(major, minor) == os.makedev(major, minor)
        assert device_number(f"{major}:{minor}") == os.makedev(major, minor)
    assert device_number("x:1") is device_number("") is device_number("1") is None


def test_what_is_below():
    """By whole names of directories."""
    assert is_below("/a/b", ["/a"])
    assert is_below("/a", ["/a"])
    assert is_below("/anything", ["/"])
    assert not is_below("/ab", ["/a"])


def test_use_and_limit(root_only, tmp_path):
    """Bytes of what is in it; a tmpfs without a limit does not tell."""
    script = f"cd {tmp_path}; mkdir a b; mount -t tmpfs -o size=8m none a; mount -t tmpfs -o size=0 none b; head -c 1000000 /dev/zero | tee a/x > b/x"
    with own_mounts(script) as pid:
        found = mounts_of(pid, tmp_path)
        used = found["/a"].used_bytes
        assert 1000000 <= used < 1100000
        assert (found["/a"].limit_bytes, found["/a"].pid, found["/a"].fs_type) == (8 << 20, pid, "tmpfs")
        assert (found["/b"].used_bytes, found["/b"].limit_bytes, found["/b"].is_hidden) == (None, None, False)


def test_a_file_system_that_is_mounted_twice(root_only, tmp_path):
    """It counts once, where all of it is mounted, not a directory of it."""
    script = (
        f"cd {tmp_path}; mkdir -p a b c; mount -t tmpfs -o size=8m none a; mkdir a/sub; head -c 1000000 /dev/zero > a/x\n"
        "mount --bind a/sub b; mount --bind a c; umount a"
    )
    with own_mounts(script) as pid:
        found = mounts_of(pid, tmp_path)
        assert [*found] == ["/c"]
        assert found["/c"].is_whole
    with own_mounts(script + "; umount c") as pid:
        found = mounts_of(pid, tmp_path)
        assert [*found] == ["/b"]
        assert not found["/b"].is_whole
        assert found["/b"].used_bytes >= 1000000


def test_one_below_another_mount(root_only, tmp_path):
    """What it holds is unknown: statvfs tells of the upper one."""
    with own_mounts(
        f"cd {tmp_path}; mkdir a; mount -t tmpfs -o size=8m none a; head -c 9999 /dev/zero > a/x; mount -t tmpfs -o size=4m none a"
    ) as pid:
        found = [mount for mount in read_tmpfs_mounts(ProcFS(), [pid]).mounts if mount.mount_point == f"{tmp_path}/a"]
        assert sorted((mount.is_hidden, mount.limit_bytes) for mount in found) == [(False, 4 << 20), (True, None)]


def test_links_stay_within_the_namespace(root_only, tmp_path):
    """The mount point in a process's root, whatever links lead there here."""
    (tmp_path / "real").mkdir()
    (tmp_path / "place").symlink_to("/")
    with own_mounts(f"cd {tmp_path}; rm place; mkdir place; mount -t tmpfs -o size=4m none place") as pid:
        assert not mounts_of(pid, tmp_path)["/place"].is_hidden
    assert (tmp_path / "place").is_dir()


def test_below_a_network_mount_nothing_is_looked_at(monkeypatch, root_only, tmp_path):
    """A stat there may hang: it counts as hidden."""
    monkeypatch.setattr(tmpfs_mounts, "REMOTE", (*tmpfs_mounts.REMOTE, "proc"))  # stands for NFS
    with own_mounts(f"cd {tmp_path}; mkdir far; mount -t proc none far; mount -t tmpfs -o size=4m none far/tty") as pid:
        found = read_tmpfs_mounts(ProcFS(), [pid])
        assert [mount.is_hidden for mount in found.mounts if mount.mount_point == f"{tmp_path}/far/tty"] == [True]
        assert f"{tmp_path}/far" in found.remote_points


def test_many(monkeypatch):
    """More namespaces than are looked at: `cut`."""
    monkeypatch.setattr(tmpfs_mounts, "_MOST_NAMESPACES", 0)
    assert read_tmpfs_mounts(ProcFS(), []).cut


def test_a_copy(tree):
    """Its disk is not theirs."""
    root = tree({"proc/1/mountinfo": "30 25 0:27 / /dev/shm rw - tmpfs tmpfs rw\n", "dev/shm/x": "y"})
    assert read_tmpfs_mounts(TreeFS(f"{root}/proc", str(root)), [1]).mounts == ()


def test_the_root_of_a_machine_that_is_mounted_here(root_only, tmp_path):
    """With --root the names are those of its own processes: /dev/shm, not DIR/dev/shm."""
    if not os.path.ismount("/dev/shm"):
        pytest.skip("needs /dev/shm")
    with own_mounts(f"mount --rbind / {tmp_path}") as pid:
        code = (
            "import sys; from opskit.proc.treefs import TreeFS; from opskit.proc.tmpfs_mounts import read_tmpfs_mounts as read\n"
            "fs = TreeFS(f'{sys.argv[1]}/proc', sys.argv[1]); print([m.mount_point for m in read(fs, fs.pids()).mounts])"
        )
        inside = ["nsenter", "-m", "-t", str(pid), sys.executable, "-c", code, str(tmp_path)]
        done = subprocess.run(
            inside, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        assert "'/dev/shm'" in done.stdout, done.stderr
        assert str(tmp_path) not in done.stdout
