"""On which mount a process's file is: by the mount in its fdinfo, or the device of its mapping.

The path in /proc/PID/fd and maps does not tell: the mount may be detached (umount -l), or be another mount namespace's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.files.fd import parse_fdinfo
from opskit.proc.files.mountinfo import REMOTE, parse_mountinfo
from opskit.proc.fs import optional
from opskit.proc.namespaces import namespace
from opskit.proc.tmpfs_mounts import device_number
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.proc.files.mountinfo import Mount
    from opskit.proc.fs import ProcFS

_MOST_NAMESPACES = 1000


class _Namespace:
    """The mounts of one mount namespace, by id and by device: of a device the one that shows all of it at the shortest path."""

    __slots__ = ("by_device", "by_id")

    def __init__(self, mounts: list[Mount]) -> None:
        self.by_id = {mount.mount_id: mount for mount in mounts}
        self.by_device: dict[int, Mount] = {}
        for mount in sorted(mounts, key=lambda each: (each.root != "/", len(each.mount_point))):
            device = device_number(mount.device)
            if device is not None:
                self.by_device.setdefault(device, mount)


class ProcessMounts:
    """The mounts that processes see. Each mount namespace is read once, when the first of its processes is asked about."""

    def __init__(self, fs: ProcFS) -> None:
        self._fs = fs
        self._known: dict[tuple[bytes | None, bytes | None], _Namespace] = {}
        self._all_are_known = False

    def of_fd(self, parts: tuple[object, ...], fd: str) -> Mount | None:
        """The mount of an fd's file; None: it is mounted nowhere by now, or nowhere that could be read.

        `parts`: the directory that has `fd` and `fdinfo`: (PID,) or (PID, "task", TID).
        """
        fields = self._fs.maybe(parse_fdinfo, *parts, "fdinfo", fd, default={})
        mount_id = integer(fields.get("mnt_id", ""))
        if mount_id is None:
            return None
        for place in self._places(parts[0]):
            if mount_id in place.by_id:
                return place.by_id[mount_id]
        return None

    def of_device(self, pid: object, device: int) -> Mount | None:
        """The mount of a device of /proc/PID/maps; None as above."""
        for place in self._places(pid):
            if device in place.by_device:
                return place.by_device[device]
        return None

    def of(self, pid: object) -> list[Mount]:
        """All mounts that a process sees."""
        return [*self._read(pid).by_id.values()]

    def _places(self, pid: object) -> Iterator[_Namespace]:
        """Its mount namespace, then the others: an fd may have come from there, by fork or over a socket."""
        yield self._read(pid)
        yield from [*self._known.values()]
        if not self._all_are_known:
            self._all_are_known = True
            before = len(self._known)
            for other in self._fs.pids():
                self._read(other)
            yield from [*self._known.values()][before:]

    def _read(self, pid: object) -> _Namespace:
        # After chroot(2) a process is shown the mounts below its root alone.
        name = namespace(self._fs, str(pid), "mnt"), optional(self._fs.link, pid, "root")
        if name not in self._known:
            if len(self._known) >= _MOST_NAMESPACES:
                return _Namespace([])
            try:
                self._known[name] = _Namespace(self._fs.load(parse_mountinfo, pid, "mountinfo"))
            except (OSError, BadInput):
                return _Namespace([])
        return self._known[name]


def is_remote(mount: Mount) -> bool:
    """Whether a look at a file there may wait for ever for a server."""
    return mount.fs_type.startswith(REMOTE)
