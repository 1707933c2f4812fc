"""The cgroups of a process at both ends of a window: pressure, page cache and refaults, limits of devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.io.devices import read_stored_pages
from opskit.collect.io.facts import CgroupIo, IoLimit
from opskit.collect.io.positions import device_name
from opskit.proc.cgroup.io import device_limits
from opskit.proc.cgroup.memory import memory_groups
from opskit.proc.cgroup.tree import is_machine_root, visible_levels
from opskit.proc.files.pressure import parse_pressures
from opskit.proc.files.vmstat import parse_vmstat
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.host import Host
    from opskit.proc.cgroup.io import DeviceLimit
    from opskit.proc.cgroup.memory import MemoryGroup
    from opskit.proc.cgroup.tree import Level
    from opskit.proc.fs import ProcFS

_REFAULTS = ("workingset_refault_file", "workingset_refault")  # before Linux 5.9 one counter of both kinds


class Moment(NamedTuple):
    """What was counted at one time. None: unknown. Pressure in us, by `some` and `full`."""

    at_s: float
    path: str
    refaults: int | None
    group: MemoryGroup | None
    pressure: Mapping[str, int]
    memory_pressure: Mapping[str, int]
    host_pressure: Mapping[str, int]
    limits: tuple[DeviceLimit, ...]
    stored_pages: int | None


class HostShares(NamedTuple):
    """Of the machine: shares of the window in which some or all tasks waited for storage; None: this kernel does not count it."""

    some: float | None
    full: float | None


def read_moment(host: Host, pid: int) -> Moment:
    """Read the cgroups of a process; what cannot be read is unknown."""
    fs = host.fs
    memory, _ = visible_levels(fs, pid, "memory")
    unified, _ = visible_levels(fs, pid, "")
    block = _block_levels(fs, pid)
    at_s = host.monotonic()
    level, group = _limited(fs, memory)
    own = unified[0] if unified and not is_machine_root(fs, unified[0]) else None
    return Moment(
        at_s, level.path if level else own.path if own else "/", _refaults(fs, level), group,
        _pressure(fs, own, "io.pressure"), _pressure(fs, own, "memory.pressure"),
        fs.maybe(parse_pressures, "pressure", "io", default={}), device_limits(fs, block),
        read_stored_pages(fs),
    )  # fmt: skip


def cgroup_io(fs: ProcFS, then: Moment, now: Moment) -> CgroupIo:
    """What happened between two moments."""
    elapsed_s = max(now.at_s - then.at_s, 1e-6)
    same = then.path == now.path
    before = {(each.path, each.device, each.what): each.used for each in then.limits}
    limits = tuple(
        IoLimit(
            each.path, device_name(fs, each.device) or each.device, each.what, float(each.limit),
            _rate(before.get((each.path, each.device, each.what)), each.used, elapsed_s),
        )
        for each in now.limits
    )  # fmt: skip
    group = now.group
    return CgroupIo(
        now.path, *_shares(then.pressure, now.pressure, elapsed_s),
        _rate(then.refaults, now.refaults, elapsed_s) if same else None, limits,
        None if group is None else min(filter(None, (group.limit_bytes, group.high_bytes)), default=None),
        None if group is None else group.cache_bytes,
        _shares(then.memory_pressure, now.memory_pressure, elapsed_s)[0],
        None if group is None else group.usage_bytes,
    )  # fmt: skip


def host_shares(then: Moment, now: Moment) -> HostShares:
    """The pressure of the machine between two moments."""
    return HostShares(*_shares(then.host_pressure, now.host_pressure, max(now.at_s - then.at_s, 1e-6)))


def _block_levels(fs: ProcFS, pid: int) -> tuple[Level, ...]:
    """The cgroups that limit devices: of v1's blkio, or v2's io."""
    levels, _ = visible_levels(fs, pid, "blkio")
    return levels or visible_levels(fs, pid, "io")[0]


def _limited(fs: ProcFS, levels: tuple[Level, ...]) -> tuple[Level | None, MemoryGroup | None]:
    """The cgroup with the smallest memory limit above a process, else its own."""
    groups = {group.path: group for group in memory_groups(fs, levels)}
    limits = {
        path: limit
        for path, group in groups.items()
        if (limit := min(filter(None, (group.limit_bytes, group.high_bytes)), default=None)) is not None
    }
    path = min(limits, key=lambda each: limits[each], default=levels[0].path if levels else "")
    return next((level for level in levels if level.path == path), None), groups.get(path)


def _refaults(fs: ProcFS, level: Level | None) -> int | None:
    """Refaults of a cgroup with those below it; of the machine where no memory cgroup is visible."""
    if level is None:
        values: Mapping[str, int] = fs.maybe(parse_vmstat, "vmstat", default={})
        prefix = ""
    else:
        values, prefix = level.table(fs, "memory.stat"), "total_" if level.version == 1 else ""
    return next((values[prefix + key] for key in _REFAULTS if prefix + key in values), None)


def _pressure(fs: ProcFS, level: Level | None, name: str) -> Mapping[str, int]:
    if level is None:
        return {}
    return fs.maybe_root(parse_pressures, level.directory.lstrip("/"), name, default={})


def _rate(then: int | None, now: int | None, elapsed_s: float) -> float | None:
    return None if then is None or now is None or now < then else (now - then) / elapsed_s


def _shares(then: Mapping[str, int], now: Mapping[str, int], elapsed_s: float) -> tuple[float | None, float | None]:
    found = [_rate(then.get(kind), now.get(kind), elapsed_s) for kind in ("some", "full")]
    some, full = (None if rate is None else min(1.0, rate / 1e6) for rate in found)
    return some, full
