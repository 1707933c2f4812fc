"""Limits and use of block devices by a cgroup (Documentation/admin-guide/cgroup-v2.rst; cgroup-v1/blkio-controller.rst).

io.max    8:16 rbps=2097152 wbps=max riops=max wiops=120
io.stat   8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0
v1        blkio.throttle.read_bps_device   8:16 2097152
          blkio.throttle.io_service_bytes  8:16 Read 1459200
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.lines import lines_of
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opskit.proc.cgroup.tree import Level
    from opskit.proc.fs import ProcFS

RBPS, WBPS, RIOPS, WIOPS = "rbps", "wbps", "riops", "wiops"
_V1_LIMITS = (
    (RBPS, "blkio.throttle.read_bps_device"), (WBPS, "blkio.throttle.write_bps_device"),
    (RIOPS, "blkio.throttle.read_iops_device"), (WIOPS, "blkio.throttle.write_iops_device"),
)  # fmt: skip
_V1_USED = (("blkio.throttle.io_service_bytes", RBPS, WBPS), ("blkio.throttle.io_serviced", RIOPS, WIOPS))
_MOST_WORDS = 32
_V2_USED = {RBPS: "rbytes", WBPS: "wbytes", RIOPS: "rios", WIOPS: "wios"}


class DeviceLimit(NamedTuple):
    """What a cgroup may do with a device in a second: `what` is rbps, wbps (bytes), riops or wiops (requests); `used`: so far, None: unknown."""

    path: str
    device: str  # major:minor
    what: str
    limit: int
    used: int | None


def device_limits(fs: ProcFS, levels: Iterable[Level]) -> tuple[DeviceLimit, ...]:
    """The limits that hold for a process of these cgroups, its own first: in v1 those of its own cgroup alone."""
    found: list[DeviceLimit] = []
    for level in levels:
        is_old = level.version == 1
        limits = dict(_v1_limits(fs, level) if is_old else _v2_limits(level.load(fs, "io.max")))
        if limits:
            used = dict(_v1_used(fs, level) if is_old else _v2_used(level.load(fs, "io.stat")))
            found += [
                DeviceLimit(level.path, device, what, limit, used.get((device, what)))
                for (device, what), limit in limits.items()
            ]
        if is_old:
            break
    return tuple(found)


def _v1_limits(fs: ProcFS, level: Level) -> Iterator[tuple[tuple[str, str], int]]:
    for what, name in _V1_LIMITS:
        for line in lines_of(level.load(fs, name) or ""):
            device, _, number = line.partition(" ")
            if limit := integer(number.strip()):
                yield (device, what), limit


def _v1_used(fs: ProcFS, level: Level) -> Iterator[tuple[tuple[str, str], int]]:
    for name, reads, writes in _V1_USED:
        for line in lines_of(level.load(fs, name) or ""):
            words = line.split()
            what = {"Read": reads, "Write": writes}.get(words[1]) if len(words) == 3 else None
            number = integer(words[-1]) if what else None
            if what and number is not None:
                yield (words[0], what), number


def _v2_limits(text: str | None) -> Iterator[tuple[tuple[str, str], int]]:
    for device, values in _pairs(text):
        for what in _V2_USED:
            if limit := integer(values.get(what, "")):
                yield (device, what), limit


def _v2_used(text: str | None) -> Iterator[tuple[tuple[str, str], int]]:
    for device, values in _pairs(text):
        for what, key in _V2_USED.items():
            number = integer(values.get(key, ""))
            if number is not None:
                yield (device, what), number


def _pairs(text: str | None) -> Iterator[tuple[str, dict[str, str]]]:
    """Each device with its `key=value` words."""
    for line in lines_of(text or ""):
        device, *words = line.split(None, _MOST_WORDS)[:_MOST_WORDS] or [""]
        yield device, {key: value for key, _, value in (word.partition("=") for word in words)}
