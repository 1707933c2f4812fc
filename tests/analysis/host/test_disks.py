"""Which file systems are full, nearly full or turned read-only."""

from __future__ import annotations

import pytest
from nextsteps import try_next

from opskit.analysis.doctor.places import chain
from opskit.analysis.finding import Entity
from opskit.analysis.host.disks import judge_disks, looked_at
from opskit.collect.fds.facts import FileSystem
from opskit.collect.host.file_systems import ReadOnly, SpaceFacts, Writer
from opskit.proc.config.fstab import Entry
from opskit.proc.files.mountinfo import parse_mountinfo

MIB, GIB, TIB = 1 << 20, 1 << 30, 1 << 40


def space(size, free, inodes=None, free_inodes=None, reserved=0):
    return SpaceFacts((FileSystem(2049, "/", "ext4", size, free, inodes, free_inodes, (), reserved),), ())


def codes(facts, **options):
    return {finding.code: finding.severity for finding in judge_disks(facts, **options)}


@pytest.mark.parametrize(
    ("size", "free"),
    [(20 * TIB, TIB), (4 * TIB, 20 * GIB), (100 * GIB, 6 * GIB), (500 * MIB, 60 * MIB), (64 * MIB, 60 * MIB)],
)
def test_disks_with_space_are_healthy(size, free):
    """A large disk at 95 % has space for long; a small /boot that is 88 % full is usual."""
    assert codes(space(size, free)) == {}


def test_the_nearer_the_end_the_more_severe():
    """Nearly full, full for users, nothing left; of inodes the same. One finding for each file system."""
    assert codes(space(100 * GIB, 4 * GIB)) == {"disk-nearly-full": "warning"}
    assert codes(space(100 * GIB, 500 * MIB, reserved=5 * GIB)) == {"disk-full": "warning"}
    assert codes(space(100 * GIB, 0)) == {"disk-full": "error"}
    inodes = 6_000_000
    assert codes(space(100 * GIB, 50 * GIB, inodes, 90_000)) == {"disk-nearly-full": "warning"}
    assert codes(space(100 * GIB, 50 * GIB, inodes, 5000)) == {"disk-inodes-used-up": "warning"}
    assert codes(space(100 * GIB, 50 * GIB, inodes, 0)) == {"disk-inodes-used-up": "error"}


def test_what_is_reserved_for_root_is_named():
    """`df` shows it as used."""
    [full] = judge_disks(space(100 * GIB, 0, reserved=5 * GIB))
    assert full.evidence == "statvfs of /; 5.0 GiB more are reserved for root"
    assert looked_at(space(1, 1)._replace(remote=2)) == ["1 file system, without 2 network file systems"]


def test_the_next_command_names_the_largest_directories(tmp_path):
    """`du` of the file system alone."""
    facts = SpaceFacts((FileSystem(2049, str(tmp_path), "ext4", 100 * GIB, 4 * GIB, None, None, ()),), ())
    assert try_next(judge_disks(facts), "disk-nearly-full").startswith("du -xd1 /")


def test_a_process_hears_of_what_it_writes_to():
    """Not of other full disks."""
    facts = space(100 * GIB, 0)
    assert codes(facts, of_processes=True) == {}
    [found] = judge_disks(facts._replace(writers={2049: Writer(42, 7)}), of_processes=True)
    assert found.entity == Entity("file", "/", inside=Entity("process", 42, 7))


def read_only(line, *, entry=None, emergency=None):
    [mount] = parse_mountinfo(line + "\n")
    one = ReadOnly(mount, "rw" in mount.own_options, emergency, entry, ("sdb1", "sdb"))
    return judge_disks(SpaceFacts((), (one,)))


DATA = "36 25 8:17 / /data {} - {} /dev/sdb1 {}"


def test_what_the_kernel_made_read_only():
    """The mount is writable and the super block is not; newer kernels have a word for it. It names the device that it is on."""
    for options, word in (
        ("ro,errors=remount-ro", None),
        ("rw,emergency_ro", "emergency_ro"),
        ("rw,shutdown", "shutdown"),
    ):
        [found] = read_only(DATA.format("rw,relatime", "ext4", options), emergency=word)
        assert (found.code, found.severity) == ("file-system-read-only", "error")
        assert [each.name for each in chain(found.entity)] == ["/data", "sdb1", "sdb", "host"]
    try_next([found], "file-system-read-only")


def test_what_the_table_of_file_systems_mounts_writable():
    """A warning; with other types or `ro` in the line it is meant so."""
    line = DATA.format("ro,relatime", "ext4", "ro")
    entry = Entry("/dev/sdb1", "/data", "ext4", ("defaults",))
    [found] = read_only(line, entry=entry)
    assert found.severity == "warning"
    assert not read_only(line, entry=entry._replace(options=("ro",)))
    assert not read_only(line, entry=entry._replace(fs_type="xfs"))
    assert [each.severity for each in read_only(DATA.format("ro", "ext4", "ro,errors=remount-ro"))] == ["note"]


@pytest.mark.parametrize("fs_type", ["squashfs", "iso9660", "erofs", "overlay"])
def test_images_are_meant_to_be_read_only(fs_type):
    """Also where the mount itself is not."""
    assert not read_only(DATA.format("rw", fs_type, "ro"))
    assert not read_only(DATA.format("ro", "ext4", "ro"))
