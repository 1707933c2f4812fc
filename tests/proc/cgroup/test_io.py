"""Limits of block devices, and what counts against them, of cgroups v1 and v2."""

from __future__ import annotations

from opskit.proc.cgroup.io import DeviceLimit, device_limits
from opskit.proc.cgroup.tree import Level
from opskit.proc.fs import ProcFS

PLACE = "sys/fs/cgroup"
APP, POD = Level("/pod/app", f"/{PLACE}/pod/app", 2), Level("/pod", f"/{PLACE}/pod", 2)
OLD, ABOVE = Level("/app", f"/{PLACE}/blkio/app", 1), Level("/", f"/{PLACE}/blkio", 1)


def limits(root, *levels):
    return device_limits(ProcFS(f"{root}/proc", str(root)), levels)


def test_limits_of_v2_hold_below_them(tree):
    """The own ones come first; `max` is no limit; a device that has done nothing has no line in io.stat: its use is unknown."""
    root = tree({
        f"{PLACE}/pod/app/io.max": "8:16 rbps=2097152 wbps=max riops=max wiops=120\n",
        f"{PLACE}/pod/app/io.stat": "8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n254:0 \n",
        f"{PLACE}/pod/io.max": "259:0 rbps=max wbps=1000\n",
        f"{PLACE}/pod/io.stat": "8:16 rbytes=1\n",
    })  # fmt: skip
    assert limits(root, APP, POD) == (
        DeviceLimit("/pod/app", "8:16", "rbps", 2097152, 1459200), DeviceLimit("/pod/app", "8:16", "wiops", 120, 353),
        DeviceLimit("/pod", "259:0", "wbps", 1000, None),
    )  # fmt: skip


def test_limits_of_v1_are_those_of_its_own_cgroup(tree):
    """blk-throttle knows no hierarchy in v1."""
    root = tree({
        f"{PLACE}/blkio/app/blkio.throttle.read_bps_device": "8:16 2097152\n254:0 5\n",
        f"{PLACE}/blkio/app/blkio.throttle.write_bps_device": "",
        f"{PLACE}/blkio/app/blkio.throttle.write_iops_device": "8:16 9\n",
        f"{PLACE}/blkio/app/blkio.throttle.io_service_bytes": "8:16 Read 77\n8:16 Write 5\n8:16 Total 82\nTotal 82\n",
        f"{PLACE}/blkio/app/blkio.throttle.io_serviced": "8:16 Write 3\n",
        f"{PLACE}/blkio/blkio.throttle.read_bps_device": "8:16 1\n",
    })  # fmt: skip
    assert limits(root, OLD, ABOVE) == (
        DeviceLimit("/app", "8:16", "rbps", 2097152, 77), DeviceLimit("/app", "254:0", "rbps", 5, None),
        DeviceLimit("/app", "8:16", "wiops", 9, 3),
    )  # fmt: skip


def test_files_that_are_not_as_expected(tree):
    """What cannot be read is no limit: empty lines, words without a number, no file at all."""
    root = tree(
        {f"{PLACE}/pod/app/io.max": "\n\n8:16\n8:17 rbps= wbps=-1 riops=1e3 wiops\n", f"{PLACE}/pod/app/io.stat": "\n"}
    )
    assert limits(root, APP, POD) == ()
    assert limits(root, OLD) == ()
