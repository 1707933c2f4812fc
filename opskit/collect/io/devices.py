"""What the machine's block devices did between two readings of /proc/diskstats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.io.facts import Device
from opskit.proc.block_devices import BlockDevice, disk_names, mounts_by_device, read_block_device
from opskit.proc.files.diskstats import SECTOR_BYTES, parse_diskstats
from opskit.proc.files.vmstat import parse_vmstat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.proc.files.diskstats import DiskStat
    from opskit.proc.fs import ProcFS

_NEGATIVE = 1 << 31  # Linux before 5.0 prints a negative number of requests in flight as an unsigned one
_MOST = 4096  # a host of containers has thousands of loop and dm devices


def read_disks(fs: ProcFS) -> dict[str, DiskStat]:
    """The counters of each disk, by name; of everything that is counted where /sys does not tell which are partitions."""
    found = fs.maybe(parse_diskstats, "diskstats", default={})
    names = disk_names(fs)
    return {name: found[name] for name in names if name in found} if names else found


def read_stored_pages(fs: ProcFS) -> int | None:
    """Dirty pages that the machine has stored since boot."""
    return fs.maybe(parse_vmstat, "vmstat", default={}).get("nr_written")


def added(then: int | None, now: int | None) -> int | None:
    """The difference of two readings; None: one is unknown."""
    return None if then is None or now is None else max(0, now - then)


def devices(
    fs: ProcFS, before: Mapping[str, DiskStat], after: Mapping[str, DiskStat], window_s: float
) -> tuple[tuple[Device, ...], tuple[str, ...]]:
    """The devices that were ever used, and the names of those whose requests the kernel does not count."""
    used = {name: stat for name, stat in after.items() if stat.finished or stat.in_flight}
    infos = [read_block_device(fs, name) for name in [*used][:_MOST]]
    mounts = mounts_by_device(fs, infos)
    found = []
    for info in infos:
        now, then = used[info.name], before.get(info.name)
        since = None if then is None else now.since(then)
        if since is not None:
            found.append(_device(info, now, since, mounts.get(info.name, ()), window_s))
    return tuple(found), tuple(info.name for info in infos if not info.is_counted)


def _device(info: BlockDevice, now: DiskStat, added: DiskStat, mounts: tuple[str, ...], window_s: float) -> Device:
    # Some drivers, such as those of md and zram on older kernels, count requests but not their time.
    is_timed = bool(now.read_ms or now.write_ms or now.busy_ms)
    if not (added.finished or added.all_ms):  # since Linux 5.0 the time of a request is counted when it has finished
        added = added._replace(all_ms=added.busy_ms * now.in_flight)

    def mean_s(milliseconds: int, requests: int) -> float | None:
        return milliseconds / 1000 / requests if requests and is_timed else None

    return Device(
        info.name,
        added.reads / window_s,
        added.writes / window_s,
        added.read_sectors * SECTOR_BYTES / window_s,
        added.written_sectors * SECTOR_BYTES / window_s,
        mean_s(added.read_ms, added.reads),
        mean_s(added.write_ms, added.writes),
        mean_s(added.flush_ms, added.flushes),
        added.flushes / window_s,
        min(1.0, added.busy_ms / 1000 / window_s),
        added.all_ms / 1000 / window_s,
        now.in_flight if now.in_flight < _NEGATIVE else 0,
        info.scheduler,
        info.write_cache,
        info.is_rotating,
        info.model,
        info.stacked_on,
        mounts,
        added.discards / window_s,
    )
