"""Captured /sys/block: partitions, dm on md on disks, loop devices, names with a slash."""

from __future__ import annotations

from trees import Link

from opskit.proc.block_devices import disk_names, mounts_by_device, read_block_device
from opskit.proc.treefs import TreeFS

MOUNTS = (
    "1 0 8:2 / / rw - ext4 /dev/sda2 rw\n2 1 253:0 / /data rw - xfs /dev/mapper/vg0-data rw\n"
    "3 1 0:40 / /btr rw - btrfs /dev/sdb rw\n4 1 8:2 /x /home/bound rw - ext4 /dev/sda2 rw\n"
)
FILES = {
    "proc/1/mountinfo": MOUNTS, "proc/1/stat": "1 (init) S",
    "sys/block/sda/dev": "8:0\n", "sys/block/sda/sda2/dev": "8:2\n", "sys/block/sda/sda2/partition": "2\n",
    "sys/block/sda/queue/scheduler": "none [mq-deadline] bfq\n", "sys/block/sda/queue/rotational": "1\n",
    "sys/block/sda/queue/write_cache": "write back\n", "sys/block/sda/device/vendor": "ATA     \n",
    "sys/block/sda/device/model": "ST4000\n", "sys/block/sda/queue/iostats": "0\n",
    "sys/block/sdb/dev": "8:16\n", "sys/block/sdb/queue/scheduler": "none\n",
    "sys/block/dm-0/dev": "253:0\n", "sys/block/dm-0/dm/name": "vg0-data\n", "sys/block/dm-0/slaves/sda2": Link("x"),
    "sys/block/dm-0/slaves/sdb": Link("x"), "sys/block/cciss!c0d0/dev": "104:0\n",
    "sys/block/loop0/loop/backing_file": "/images/a.img\n", "sys/block/loop0/dev": "7:0\n",
}  # fmt: skip


def test_what_they_are(tree):
    """The scheduler in brackets, the model, what a device stands on (its disks, not their partitions), whether it is counted."""
    root = tree(FILES)
    fs = TreeFS(f"{root}/proc", str(root))
    assert disk_names(fs) == ["cciss/c0d0", "dm-0", "loop0", "sda", "sdb"]
    sda, dm, loop, other = (read_block_device(fs, name) for name in ("sda", "dm-0", "loop0", "cciss/c0d0"))
    assert (sda.scheduler, sda.write_cache, sda.is_rotating, sda.model) == (
        "mq-deadline",
        "write back",
        True,
        "ATA ST4000",
    )
    assert (sda.numbers, sda.is_counted, other.numbers) == (("8:0", "8:2"), False, ("104:0",))
    assert (dm.model, dm.stacked_on, loop.model) == ("vg0-data", ("sda", "sdb"), "/images/a.img")
    assert read_block_device(fs, "gone").numbers == ()


def test_where_they_are_mounted(tree):
    """By number, and btrfs by its source; the shortest path first."""
    root = tree(FILES)
    fs = TreeFS(f"{root}/proc", str(root))
    mounts = mounts_by_device(fs, [read_block_device(fs, name) for name in ("sda", "sdb", "dm-0")])
    assert mounts == {"sda": ("/", "/home/bound"), "sdb": ("/btr",), "dm-0": ("/data",)}
