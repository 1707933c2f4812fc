"""The local file systems that can be full: mountinfo, statvfs(3). Those of the network are left out: a look may hang.

25 30 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
36 25 0:27 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=24684092k
61 25 0:44 / /var/lib/docker/overlay2/3f2a/merged rw - overlay overlay rw,lowerdir=…,upperdir=/var/lib/docker/overlay2/3f2a/diff,workdir=…
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fs import optional
from opskit.proc.process_mounts import is_remote
from opskit.proc.tmpfs_mounts import TMPFS, device_number, is_below, path_of
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.proc.file_space import Space
    from opskit.proc.files.mountinfo import Mount
    from opskit.proc.fs import ProcFS
    from opskit.proc.process_mounts import ProcessMounts
    from opskit.proc.tmpfs_mounts import TmpfsMount

OVERLAY = "overlay"
# Without a block device of their own. Other types without one hold no files (proc, sysfs, cgroup2).
_WITHOUT_DEVICE = (TMPFS, "btrfs", "bcachefs", "zfs", OVERLAY)
_MANY_DEVICES = ("btrfs", "bcachefs")  # a file there has its subvolume's device
_CLUSTER = ("gfs2", "ocfs2")  # on a block device, and yet it waits for other machines
_UPPER = "upperdir="


class LocalFileSystem(NamedTuple):
    """A file system, at the shortest path where all of it is mounted, as the process `pid` sees it; None: opskit.

    `place`: the same as a path for who reads opskit's output, below PROC/PID/root where another mount namespace has it.
    """

    device: int
    mount_point: str
    fs_type: str
    pid: int | None
    space: Space
    place: str


class LocalFileSystems:
    """Finds them, each once, by the device of its super block."""

    def __init__(self, fs: ProcFS, mounts: ProcessMounts) -> None:
        self._fs, self._mounts = fs, mounts
        self.found: dict[int, LocalFileSystem] = {}
        self._looked_at: dict[int, int | None] = {}
        self._of_subvolume: dict[int, int] = {}
        self._slow_below: dict[tuple[object, tuple[str, ...]], tuple[str, ...]] = {}
        self._viewer = None if self._sees_ours() else 1

    def add_all(self) -> None:
        """Add those that opskit sees, with --root those that the machine's init sees."""
        pid = self._viewer
        for mount in sorted(self._mounts.of(pid or "self"), key=lambda each: (each.root != "/", len(each.mount_point))):
            self.add(mount, pid)

    def add(self, mount: Mount, pid: int | None) -> int | None:
        """Add the one of a mount that a process sees, and return its device. None: it cannot be looked at.

        Of an overlay it is the device of the file system that it writes to, where opskit sees that.
        """
        device = device_number(mount.device)
        if device is None or not is_local(mount):
            return None
        if self._looked_at.get(device) is None:
            self._looked_at[device] = self._look(device, mount, pid)
        return self._looked_at[device]

    def add_tmpfs(self, mount: TmpfsMount) -> int | None:
        """Add one of any mount namespace, and return its device. None: it has no limit, or is hidden."""
        space = mount.space
        if mount.fs_type != TMPFS or space is None or not space.size_bytes:
            return None
        self._found(mount.device, mount.mount_point, mount.fs_type, mount.pid, space)
        return mount.device

    def _found(self, device: int, mount_point: str, fs_type: str, pid: int | None, space: Space) -> None:
        is_seen = pid in (None, self._viewer)
        place = mount_point if is_seen else f"{self._fs.path(pid, 'root')}{mount_point}"
        self.found.setdefault(device, LocalFileSystem(device, mount_point, fs_type, pid, space, place))

    def _look(self, device: int, mount: Mount, pid: int | None) -> int | None:
        upper = _upper_directory(mount)
        if upper.startswith("/") and self._sees_ours() and not is_below(upper, self._slow("self", "autofs")):
            below = optional(self._fs.file_id_at, upper)
            if below is not None:
                return self._of_subvolume.get(below.device, below.device)
        if is_below(mount.mount_point, self._slow(pid or "self")):
            return None
        path = optional(path_of, self._fs, pid, mount.mount_point)
        if path is not None and mount.mount_point == "/":
            path += "/."  # PROC/PID/root is a link, and a link at the end is not followed
        place = optional(self._fs.file_id_at, path) if path is not None else None
        # Another mount may be on top of it.
        if place is None or (place.device != device and mount.fs_type not in _MANY_DEVICES):
            return None
        space = optional(self._fs.space_at, path)
        if space is None:
            return None
        self._of_subvolume[place.device] = device
        self._found(device, mount.mount_point, mount.fs_type, pid, space)
        return device

    def _slow(self, pid: object, *types: str) -> tuple[str, ...]:
        """Where a process sees network file systems, and those of these types: a path below one may wait for ever."""
        key = pid, types
        if key not in self._slow_below:
            self._slow_below[key] = tuple(
                mount.mount_point for mount in self._mounts.of(pid) if is_remote(mount) or mount.fs_type in types
            )
        return self._slow_below[key]

    def _sees_ours(self) -> bool:
        """Whether a path in our mountinfo is a path here."""
        return self._fs.is_own() and not self._fs.root


def is_local(mount: Mount) -> bool:
    """Whether it is a disk's, or a tmpfs, that nothing but this machine serves, and that is written to."""
    if is_remote(mount) or mount.fs_type in _CLUSTER:
        return False
    if mount.fs_type == OVERLAY and not _upper_directory(mount):
        return False
    return mount.fs_type in _WITHOUT_DEVICE or not mount.device.startswith("0:")


def _upper_directory(mount: Mount) -> str:
    if mount.fs_type != OVERLAY:
        return ""
    return next((option[len(_UPPER) :] for option in mount.options if option.startswith(_UPPER)), "")
