"""What a block device is: /sys/block/NAME (Documentation/ABI/stable/sysfs-block), and where its file systems are mounted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.mountinfo import parse_mountinfo
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opskit.proc.fs import ProcFS

_LONGEST = 256  # of a text that a device or a user chose
_MOST_BELOW, _MOST_MOUNTS, _DEEPEST = 64, 8, 8


class BlockDevice(NamedTuple):
    """A disk. `model`: its vendor's name for it, a dm device's name, an md device's level or a loop device's file.

    `stacked_on`: the disks below it, of which it may use partitions. `numbers`: `major:minor` of it and of its partitions.
    `is_counted`: whether the kernel counts its requests (queue/iostats). None: unknown.
    """

    name: str
    numbers: tuple[str, ...]
    scheduler: str | None = None
    write_cache: str | None = None
    is_rotating: bool | None = None
    model: str | None = None
    stacked_on: tuple[str, ...] = ()
    is_counted: bool = True


def disk_names(fs: ProcFS) -> list[str]:
    """The disks, without partitions, as /proc/diskstats has them; empty where /sys cannot be read."""
    return [name.replace("!", "/") for name in fs.names_root("sys", "block")]


def read_block_device(fs: ProcFS, name: str) -> BlockDevice:
    """What /sys has about a disk; a disk that is gone has no more than its name."""
    place = ("sys", "block", name.replace("/", "!"))

    def line(*parts: str) -> str | None:
        text = fs.maybe_root(str.strip, *place, *parts)
        return text[:_LONGEST] if text else None

    names = fs.names_root(*place)
    partitions = [each for each in names if each.startswith(place[-1]) and fs.root_exists(*place, each, "partition")]
    numbers = (line("dev"), *(line(each, "dev") for each in partitions))
    below = fs.names_root(*place, "slaves")[:_MOST_BELOW] if "slaves" in names else []
    scheduler, rotational = line("queue", "scheduler"), line("queue", "rotational")
    return BlockDevice(
        name,
        tuple(number for number in numbers if number is not None),
        None if scheduler is None else chosen(scheduler),
        line("queue", "write_cache"),
        None if rotational is None else rotational == "1",
        _model(line),
        tuple(dict.fromkeys(_disk_of(fs, each).replace("!", "/") for each in below)),
        line("queue", "iostats") != "0",
    )


def device_chain(fs: ProcFS, name: str) -> tuple[str, ...]:
    """A device and what it is on: `dm-0`, `sda2`, `sda`. It ends where there are several below: none of them alone has all of it."""
    found = [name]
    while len(found) < _DEEPEST:
        disk = _disk_of(fs, found[-1])
        below = [disk] if disk != found[-1] else fs.names_root("sys", "block", disk, "slaves")
        if len(below) != 1 or below[0] in found:
            break
        found += below
    return tuple(found)


def chosen(text: str) -> str:
    """The name in brackets of `none [mq-deadline] kyber`; a name that stands alone."""
    return text.partition("[")[2].partition("]")[0] or text


def mounts_by_device(fs: ProcFS, disks: Iterable[BlockDevice]) -> Mapping[str, tuple[str, ...]]:
    """Where the file systems of each disk are mounted, as PID 1 sees it, the shortest paths first."""
    mounts = fs.maybe(parse_mountinfo, 1, "mountinfo") or fs.maybe(parse_mountinfo, "self", "mountinfo", default=[])
    points: dict[str, dict[str, None]] = {}
    for mount in mounts:
        # The files of btrfs have a device number of their own: its source names the disk.
        key = mount.source if mount.device.startswith("0:") else mount.device
        points.setdefault(key, {})[mount.mount_point] = None
    found = {}
    for disk in disks:
        keys = [*disk.numbers, f"/dev/{disk.name}", *([f"/dev/mapper/{disk.model}"] if disk.model else [])]
        paths = {path for key in keys for path in points.get(key, ())}
        found[disk.name] = tuple(sorted(paths, key=lambda path: (len(path), path))[:_MOST_MOUNTS])
    return found


def _model(line: Callable[..., str | None]) -> str | None:
    vendor, model = line("device", "vendor"), line("device", "model")
    if model is not None and vendor is not None and not vendor.startswith("0x"):  # a PCI id of virtio
        return f"{vendor} {model}"
    return model or line("dm", "name") or line("md", "level") or line("loop", "backing_file")


def _disk_of(fs: ProcFS, name: str) -> str:
    """The disk of a partition `sda2`: the longest name of one that it begins with; a disk is its own."""
    disks = fs.names_root("sys", "block")
    if name in disks:
        return name
    return max((disk for disk in disks if name.startswith(disk)), key=len, default=name)
