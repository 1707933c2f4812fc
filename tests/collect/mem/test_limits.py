"""Who shares a memory limit, files that nobody holds, and the room that is left, of real processes and captured trees."""

from __future__ import annotations

import os
from pathlib import Path

import cgroups
import holders
import pytest

from opskit.collect.mem.limits import read_host_memory, read_huge_limits, read_levels, read_members, read_sharing
from opskit.collect.memory_limits import read_room
from opskit.host import Host

MIB = 1 << 20


@pytest.fixture
def limited(root_only):
    """A memory cgroup with a limit of 200 MiB."""
    with cgroups.new_cgroup("memory", f"opskit-test-share-{os.getpid()}", "memory.max memory.limit_in_bytes") as place:
        limit = next(place / each for each in ("memory.max", "memory.limit_in_bytes") if (place / each).exists())
        limit.write_text(str(200 * MIB))
        yield place


@pytest.fixture
def host():
    return Host.at(None, None)


def test_the_members_of_a_cgroup(host, limited):
    """Its own processes and those below it, the largest first, with what each holds."""
    below = limited / "below"
    below.mkdir()
    name = f"opskit-test-share-{os.getpid()}"
    try:
        with (
            holders.native("anon=30", cgroup=limited) as one,
            holders.native("anon=5", f"shm=20:{name}", cgroup=below) as other,
            holders.native("anon=9") as stranger,
        ):
            levels, unknown = read_levels(host.fs, one.pid)
            sharing = read_sharing(host, one.pid, levels, 0)
            assert unknown is None
            assert [member.pid for member in sharing.members] == [one.pid, other.pid]
            assert stranger.pid not in [member.pid for member in sharing.members]
            first, second = sharing.members
            assert first.anon_bytes == pytest.approx(30 * MIB, rel=0.05)
            assert (second.shmem_bytes, second.command) == (20 * MIB, first.command)
            assert sharing.unheld == ()  # it is mapped
            assert (first.swap_bytes, first.page_table_bytes > 0) == (0, True)
    finally:
        Path(f"/dev/shm/{name}").unlink(missing_ok=True)
        below.rmdir()


def test_a_file_that_nobody_holds(host, limited):
    """It is looked for only where the cgroup is charged for more than its processes map, and is no larger than that."""
    name = Path(f"/dev/shm/opskit-test-share-{os.getpid()}")
    try:
        with holders.native(f"shm=20:{name.name}", cgroup=limited):
            pass
        with holders.native("anon=2", cgroup=limited) as held:
            levels, _ = read_levels(host.fs, held.pid)
            (found,) = (each for each in read_sharing(host, held.pid, levels, 0).unheld if each.path == str(name))
            assert (found.kind, found.bytes, found.inode) == ("tmpfs", 20 * MIB, name.stat().st_ino)
            assert 0 <= found.age_s < 60
            with open(name, "rb"):
                assert str(name) not in [each.path for each in read_sharing(host, held.pid, levels, 0).unheld]
        with holders.native("anon=2") as elsewhere:
            assert read_sharing(host, elsewhere.pid, read_levels(host.fs, elsewhere.pid)[0], 0).unheld == ()
    finally:
        name.unlink()


def test_the_machine(host):
    """Of this process."""
    found = read_host_memory(host, os.getpid())
    assert found.meminfo["MemTotal"] > found.meminfo["MemAvailable"] > 0
    assert 0 <= found.oom_score <= 2000
    assert found.oom_score_adj == int(Path("/proc/self/oom_score_adj").read_text())
    assert found.overcommit in (0, 1, 2)


def test_what_cannot_be_read_is_unknown(tree):
    """A tree without cgroups, meminfo and scores."""
    root = tree({"proc/1/comm": "init\n"})
    host = Host.at(str(root), None)
    levels, unknown = read_levels(host.fs, 1)
    assert (levels, unknown) == ((), "/proc/1/cgroup is not in this proc tree")
    assert read_huge_limits(host.fs, 1) == ()
    assert read_host_memory(host, 1) == ({}, None, None, None, None)
    assert read_sharing(host, 1, levels, 0) == ((), 0, ())


def test_the_room_is_without_page_cache(tree):
    """The tightest of the machine and the cgroups, as `opskit jmap-diff` shows it."""
    mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
    at = "sys/fs/cgroup/app"
    files = {
        "proc/7/cgroup": "0::/app\n", "proc/1/mountinfo": mount, "proc/meminfo": "MemTotal: 90000 kB\nMemAvailable: 80000 kB\n",
        "sys/fs/cgroup/cgroup.controllers": "memory\n", f"{at}/memory.max": "50000000\n", f"{at}/memory.current": "49000000\n",
        f"{at}/memory.stat": "inactive_file 20000000\nactive_file 1000000\nslab_reclaimable 500000\n",
    }  # fmt: skip
    host = Host.at(str(tree(files)), None)
    assert read_room(host, 7) == ("the memory limit of cgroup /app", 50_000_000 - 49_000_000 + 21_500_000)
    more = Host.at(str(tree({f"{at}/memory.max": "max\n"})), None)
    assert read_room(more, 7) == ("the machine's memory", 80_000 * 1024)


def test_many_members_are_counted(host, limited, monkeypatch):
    """And this process is always among those that are read."""
    monkeypatch.setattr("opskit.collect.mem.limits._MOST_MEMBERS", 1)
    with holders.native("anon=2", cgroup=limited) as one, holders.native("anon=2", cgroup=limited) as last:
        levels, _ = read_levels(host.fs, last.pid)
        for pid in (one.pid, last.pid):
            members, unread = read_members(host.fs, pid, levels[0])
            assert ([member.pid for member in members], unread) == ([pid], 1)
