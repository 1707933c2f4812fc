"""Mounted file systems whose files are in memory (tmpfs, devtmpfs, ramfs, hugetlbfs), in every mount namespace: mountinfo, statvfs(3).

36 25 0:27 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=24684092k
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.mountinfo import REMOTE, Mount, parse_mountinfo
from opskit.proc.fs import optional
from opskit.proc.lines import lines_of
from opskit.proc.namespaces import namespace
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.file_space import Space
    from opskit.proc.fs import ProcFS

TMPFS, HUGETLBFS, RAMFS = "tmpfs", "hugetlbfs", "ramfs"
IN_MEMORY = (TMPFS, "devtmpfs", RAMFS, HUGETLBFS)
_MOST_NAMESPACES, _MOST_MOUNTS = 2000, 5000


class TmpfsMount(NamedTuple):
    """A file system in memory, once, where the first process that sees it has it mounted.

    `device` as in stat; `pid`: a process of its mount namespace, None: opskit's own. `used_bytes`: pages, swapped ones too; None: unknown (mounted without a
    limit, or hidden under another mount: `is_hidden`). `limit_bytes` None: no limit. `is_whole`: not only a directory of it is mounted there.
    `space`: None where it is unknown.
    """

    device: int
    fs_type: str
    mount_point: str
    pid: int | None
    used_bytes: int | None
    limit_bytes: int | None
    is_hidden: bool = False
    is_whole: bool = True
    space: Space | None = None


class TmpfsMounts(NamedTuple):
    """All that were found. `unread`: mount namespaces that could not be read; `cut`: there are more than are looked at."""

    mounts: tuple[TmpfsMount, ...]
    remote_points: tuple[str, ...]
    unread: int = 0
    cut: bool = False


def device_number(text: str) -> int | None:
    """`0:27` of mountinfo, in decimal, as st_dev (gnu_dev_makedev)."""
    major, minor = (integer(word) for word in text.partition(":")[::2])
    return None if major is None or minor is None else make_device(major, minor)


def make_device(major: int, minor: int) -> int:
    """The number of a device as stat has it."""
    return (minor & 0xFF) | (major & 0xFFF) << 8 | (minor & ~0xFF) << 12 | (major & ~0xFFF) << 32


def memory_devices(mountinfo: str) -> frozenset[str]:
    """The devices of the file systems in memory, as /proc/PID/maps has them: `00:1b`. Raises BadInput."""
    pairs = (
        [integer(word) for word in mount.device.split(":")] for mount in _parse(mountinfo) if mount.fs_type in IN_MEMORY
    )
    return frozenset(f"{pair[0]:02x}:{pair[1]:02x}" for pair in pairs if len(pair) == 2 and None not in pair)


def read_tmpfs_mounts(fs: ProcFS, pids: Iterable[int]) -> TmpfsMounts:
    """The file systems, opskit's own namespace first, with --root that of PID 1. In a copy there is none: what a copy's disk says is not theirs."""
    if not fs.is_live:
        return TmpfsMounts((), ())
    found: dict[int, TmpfsMount] = {}
    remote: dict[str, None] = {}
    seen: set[bytes | None] = {None}
    unread = looked = 0
    cut = False
    # Under --root the machine's own names are those of its init, not where its root is mounted here.
    readers: list[int | str] = ["self", 1, *pids] if fs.is_own() and not fs.root else [1, *pids]
    for reader in readers:
        name = namespace(fs, reader, "mnt")
        if name in seen:
            continue
        seen.add(name)
        if len(seen) > _MOST_NAMESPACES or looked > _MOST_MOUNTS:
            cut = True
            break
        mounts = fs.maybe(_parse, reader, "mountinfo")
        if mounts is None:
            unread += 1
            continue
        pid = reader if isinstance(reader, int) else None
        far = tuple(mount.mount_point for mount in mounts if mount.fs_type not in IN_MEMORY)
        remote.update(dict.fromkeys(far))
        for mount in mounts:
            if mount.fs_type in IN_MEMORY:
                looked += 1
                _add(fs, found, mount, pid, far)
    return TmpfsMounts(tuple(found.values()), tuple(remote), unread, cut)


def path_of(fs: ProcFS, pid: int | None, path: str) -> str:
    """Our path of a file of a mount namespace, by one of its processes; None: opskit's own."""
    return path if pid is None else fs.inside(pid, path)


def is_for_sharing(mount_point: str | None) -> bool:
    """Whether a tmpfs is a /dev/shm, also a container's as its host sees it: /run/containerd/…/shm."""
    return mount_point is not None and mount_point.rpartition("/")[2] == "shm"


def is_below(path: str, points: Iterable[str]) -> bool:
    """Whether a path is one of these directories, or inside one."""
    return any(path == point or path.startswith(f"{point.rstrip('/')}/") for point in points)


def _parse(text: str) -> list[Mount]:
    """The mounts in memory, and those where a look may wait for a server: a host of containers has thousands of others."""
    wanted = (*IN_MEMORY, *REMOTE)
    mounts = [line for line in lines_of(text) if line.partition(" - ")[2].startswith(wanted)]
    return parse_mountinfo("\n".join(mounts))


def _add(fs: ProcFS, found: dict[int, TmpfsMount], mount: Mount, pid: int | None, far: tuple[str, ...]) -> None:
    """Add a mount, unless the same file system is known with its use."""
    device, is_whole = device_number(mount.device), mount.root == "/"
    known = None if device is None else found.get(device)
    if device is None or (known and not known.is_hidden and (known.is_whole or not is_whole)):
        return
    path = None if is_below(mount.mount_point, far) else optional(path_of, fs, pid, mount.mount_point)
    place = optional(fs.file_id_at, path) if path else None
    if place is None or place.device != device:  # another mount is on top, or the directory was replaced
        hidden = TmpfsMount(
            device, mount.fs_type, mount.mount_point, pid, None, None, is_hidden=True, is_whole=is_whole
        )
        found.setdefault(device, hidden)
        return
    space: Space | None = optional(fs.space_at, path)
    has_limit = space is not None and space.size_bytes > 0
    used = space.size_bytes - space.free_bytes if space is not None and has_limit else None
    limit = space.size_bytes if space is not None and has_limit else None
    found[device] = TmpfsMount(
        device, mount.fs_type, mount.mount_point, pid, used, limit, is_whole=is_whole, space=space
    )
