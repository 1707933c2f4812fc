"""Which devices fail, by two readings of trees as the kernel writes them."""

from __future__ import annotations

import pytest
from nextsteps import try_next

from opskit.analysis.doctor.places import chain
from opskit.analysis.host.devices import judge_devices, looked_at
from opskit.collect.host.device_errors import collect_device_errors, parse_error_stats
from opskit.host import Host

BASE = {"proc/1/mountinfo": "", "proc/meminfo": "MemTotal: 1 kB\n"}


@pytest.fixture
def machine(tree):
    """Two readings of a tree that changes in between: a function of its files and of what changes."""

    def look(files, after=None, now_s=None):
        root = tree({**BASE, **files})
        host = Host.at(str(root), None)
        clock = iter(range(100))
        host.monotonic = lambda: float(next(clock))
        host.sleep = lambda _: tree(after or {})
        if now_s is not None:
            host.fs.is_live = True
            host.now = lambda: type("Now", (), {"timestamp": staticmethod(lambda: now_s)})
        return collect_device_errors(host, 1.0)

    return look


def scsi(name="sda", state="running", failed="0x1f", late="0x0", **more):
    at = f"sys/block/{name}"
    files = {
        f"{at}/device/state": state, f"{at}/device/ioerr_cnt": failed, f"{at}/device/iotmo_cnt": late,
        f"{at}/size": "1000\n", f"{at}/removable": "0\n", f"{at}/dev": "8:0\n",
    }  # fmt: skip
    return {**files, **{f"{at}/{path}": text for path, text in more.items()}}


def codes(facts):
    return [(finding.code, finding.severity) for finding in judge_devices(facts)]


def test_healthy_disks_have_counters_above_zero(machine):
    """Commands that a disk does not support fail; a card reader without a card fails all the time."""
    facts = machine(
        {**scsi(), **scsi("sdb", size="0\n", removable="1\n")}, scsi("sdb", failed="0xff", size="0\n", removable="1\n")
    )
    assert codes(facts) == []
    assert looked_at(facts) == ["2 disks"]


def test_errors_in_the_window(machine):
    """Timeouts and several failed commands are a warning, one failed command is a note."""
    assert codes(machine(scsi(), scsi(failed="0x20"))) == [("storage-error", "note")]
    [found] = judge_devices(machine(scsi(), scsi(failed="0x25", late="0x2")))
    assert (found.severity, found.entity.id) == ("warning", "sda")
    assert found.summary == "sda: 2 commands timed out and 6 commands failed in 1.0 s"
    try_next([found], "storage-error")


def test_devices_offline(machine):
    """A disk without mounts is a warning, a mounted one an error; an NVMe controller that is dead."""
    files = {**scsi(state="offline\n"), "sys/class/nvme/nvme0/state": "dead\n", "sys/class/nvme/nvme1/state": "live\n"}
    found = judge_devices(machine(files))
    assert [(each.entity.id, each.severity) for each in found] == [("nvme0", "error"), ("sda", "warning")]
    try_next(found, "device-offline")
    mounted = {**scsi(state="transport-offline\n"), "proc/1/mountinfo": "36 25 8:0 / /data rw - xfs /dev/sda rw\n"}
    found = judge_devices(machine(mounted))
    assert {each.entity.id: each.severity for each in found}["sda"] == "error"


def md(level, members, degraded, action="idle", **more):
    files = {
        "level": f"{level}\n", "raid_disks": f"{members}\n", "degraded": f"{degraded}\n", "array_state": "clean\n",
        "sync_action": f"{action}\n", "sync_completed": "none\n", "mismatch_cnt": "0\n",
    }  # fmt: skip
    return {f"sys/block/md0/md/{name}": text for name, text in {**files, **more}.items()}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (md("raid1", 2, 0), None), (md("raid1", 2, 1), "error"), (md("raid1", 3, 1), "warning"), (md("raid1", 16, 14), "note"),
        (md("raid5", 4, 1), "error"), (md("raid6", 6, 1), "warning"), (md("raid6", 6, 2), "error"),
        (md("raid5", 4, 1, "recover"), "warning"), (md("raid5", 4, 0, "resync"), None),
        (md("raid5", 4, 0, mismatch_cnt="128\n"), "note"), (md("raid1", 2, 0, mismatch_cnt="128\n"), None),
        (md("raid0", 2, 0, array_state="broken\n"), "error"), (md("raid5", 4, 0, array_state="inactive\n"), "error"),
        (md("", 0, 0, array_state="inactive\n", metadata_version="external:imsm\n"), None),
    ],
)  # fmt: skip
def test_arrays(machine, files, expected):
    """By what the next failure would lose; mirrors of appliances with empty slots, and mismatches of mirrors, are healthy."""
    assert [severity for _, severity in codes(machine(files))] == ([expected] if expected else [])


def test_a_degraded_array_names_what_is_missing(machine):
    """Members that are faulty, and how far a rebuild is."""
    faulty = {"sys/block/md0/md/dev-sdb1/state": "faulty\n", "sys/block/md0/md/dev-sda1/state": "in_sync\n"}
    [found] = judge_devices(machine({**md("raid1", 2, 1, "recover", sync_completed="250 / 1000\n"), **faulty}))
    assert found.summary == "md0 (raid1) lacks 1 of 2 members (sdb1); a rebuild runs, 25 % done"
    try_next([found], "raid-degraded")


def test_pools(machine):
    """ZFS and btrfs."""
    files = {
        "proc/spl/kstat/zfs/tank/state": "DEGRADED\n", "proc/spl/kstat/zfs/ok/state": "ONLINE\n",
        "sys/fs/btrfs/1a/label": "data\n", "sys/fs/btrfs/1a/devinfo/1/missing": "0\n", "sys/fs/btrfs/1a/devinfo/2/missing": "1\n",
    }  # fmt: skip
    summaries = [(each.severity, each.summary) for each in judge_devices(machine(files))]
    assert summaries == [("error", "btrfs data lacks 1 of 2 devices"), ("warning", "ZFS pool tank is DEGRADED")]


def ext4(errors, last_s):
    at = "sys/fs/ext4/sda1"
    return {
        f"{at}/errors_count": f"{errors}\n",
        f"{at}/last_error_time": f"{int(last_s)}\n",
        f"{at}/last_error_func": "ext4_lookup\n",
    }


def test_ext4_errors_of_today_and_older_ones(machine):
    """Since the last fsck; the time of the last one decides, and whether it is counted in the window."""
    assert codes(machine(ext4(0, 0), now_s=1e6)) == []
    [found] = judge_devices(machine(ext4(3, 1e6 - 3600), now_s=1e6))
    assert (found.severity, found.entity.id) == ("error", "sda1")
    try_next([found], "filesystem-error")
    assert codes(machine(ext4(3, 1e6 - 2 * 86400), now_s=1e6)) == [("filesystem-error", "note")]
    assert codes(machine(ext4(3, 1e6 + 3600), now_s=1e6)) == [("filesystem-error", "note")]
    below = {"sys/block/dm-0/slaves/sdb2/dev": "8:18\n", "sys/block/sdb/dev": "8:16\n"}
    moved = {path.replace("sda1", "dm-0"): text for path, text in ext4(3, 1e6).items()}
    found = {each.entity.name: each for each in judge_devices(machine({**moved, **below}, now_s=1e6))}
    assert [each.name for each in chain(found["dm-0"].entity)] == ["dm-0", "sdb2", "sdb", "host"]


def test_btrfs_errors_count_by_what_changed(machine):
    """Its counters are kept for ever, and have no time."""
    at = "sys/fs/btrfs/1a/devinfo/1/error_stats"
    old, new = "write_errs 0\nread_errs 7\n", "write_errs 2\nread_errs 7\n"
    assert codes(machine({at: "write_errs 0\nread_errs 0\n"})) == []
    assert codes(machine({at: old})) == [("filesystem-error", "note")]
    assert codes(machine({at: old}, {at: new})) == [("filesystem-error", "error")]
    assert parse_error_stats("write_errs 1\nx\nread_errs y\n") == {"write_errs": 1}
