"""Devices of file systems in memory."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.tmpfs_mounts import memory_devices

MOUNTS = (
    "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n"
    "25 1 0:27 / /dev/shm rw - tmpfs tmpfs rw\n"
    "26 1 0:5 / /dev rw - devtmpfs none rw\n"
    "27 1 0:300 / /run/user rw - tmpfs tmpfs rw\n"
)


def test_devices_as_maps_has_them():
    """Two hexadecimal digits at least; disks are none."""
    assert memory_devices(MOUNTS) == {"00:1b", "00:05", "00:12c"}
    assert memory_devices("") == frozenset()


def test_a_damaged_mountinfo():
    """A line that is none of a mount."""
    with pytest.raises(BadInput):
        memory_devices("25 1 0:27 / - tmpfs\n25 - tmpfs x\n")
