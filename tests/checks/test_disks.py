"""Full and read-only file systems of other mount namespaces, for real."""

from __future__ import annotations

import os
import shutil

import pytest
from nextsteps import try_next
from ownmounts import own_mounts

from opskit.checks.disks import check
from opskit.checks.look import Look
from opskit.host import Host

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def found(look):
    return {each.entity.id.rpartition("/")[2]: each for each in check(look).findings}


def test_full_file_systems_of_another_mount_namespace(tmp_path):
    """By bytes, by inodes, nearly; a read-only image of the same kind is healthy. A process hears only of what it writes to."""
    script = f"""
        cd {tmp_path}; mkdir bytes inodes nearly image roomy
        mount -t tmpfs -o size=4m t bytes; head -c 4100k /dev/zero > bytes/x || :
        mount -t tmpfs -o nr_inodes=20,size=4m t inodes; for i in $(seq 30); do touch inodes/$i || break; done 2>/dev/null
        mount -t tmpfs -o size=8m t nearly; head -c 7900k /dev/zero > nearly/x
        mount -t tmpfs -o size=4m t image; head -c 4100k /dev/zero > image/x || :; mount -o remount,ro image
        mount -t tmpfs -o size=8m t roomy; cd bytes
    """
    with own_mounts(script) as pid:
        seen = {name: each for name, each in found(Look(Host.at(None, None))).items() if str(pid) in each.entity.id}
        expected = {"bytes": "disk-full", "inodes": "disk-inodes-used-up", "nearly": "disk-nearly-full"}
        assert {name: each.code for name, each in seen.items()} == expected
        for name, each in seen.items():
            assert try_next([each], expected[name])
        [own] = check(Look(Host.at(None, None), (pid,))).findings
        assert (own.code, own.entity.inside.id) == ("disk-full", pid)


def test_a_deleted_file_that_fills_a_file_system(tmp_path):
    """The file that is held is the cause, with its holder; a full file system next to it has none."""
    script = f"""
        cd {tmp_path}; mkdir held
        mount -t tmpfs -o size=4m t held; exec 9>> held/log; head -c 4100k /dev/zero >&9 || :; rm held/log
    """
    with own_mounts(script):
        seen = [each for each in check(Look(Host.at(None, None))).findings if str(tmp_path) in str(each.entity.id)]
        full, held = sorted(seen, key=lambda each: each.code == "deleted-files-held")
        assert try_next([held], "deleted-files-held").endswith(" --deleted")
    assert (full.code, held.code, held.severity) == ("disk-full", "deleted-files-held", "warning")
    assert held.entity.id == full.entity.id
    assert "deleted but held" in held.summary
    assert held.fix.endswith("/fd/9")


def test_a_file_system_that_an_error_made_read_only(tmp_path):
    """ext4 with errors=remount-ro, by the kernel's own trigger; remounted by hand it is a note."""
    if not shutil.which("mkfs.ext4"):
        pytest.skip("needs mkfs.ext4")
    script = f"""
        cd {tmp_path}; mkdir broken plain
        for each in broken plain; do
            truncate -s 2m $each.img; mkfs.ext4 -q -O ^has_journal $each.img
            mount -o loop,errors=remount-ro $each.img $each || exit 0
        done
        name=$(awk -v at={tmp_path}/broken '$2 == at {{ sub("/dev/", "", $1); print $1 }}' /proc/self/mounts)
        echo 1 > /sys/fs/ext4/$name/trigger_fs_error || exit 0
        mount -o remount,ro plain
    """
    with own_mounts(script) as pid:
        seen = found(Look(Host.at(None, None), ()))
        mine = {
            name: each
            for name, each in seen.items()
            if each.code == "file-system-read-only" and str(tmp_path) in each.entity.id
        }
        assert {name: each.severity for name, each in mine.items()} == {"broken": "error", "plain": "note"}, pid
        assert mine["broken"].entity.inside.id.startswith("loop")
