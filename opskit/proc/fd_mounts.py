"""On which file system an fd's file is, by the mount in its fdinfo: a stat of a file on a network mount may hang.

The path in /proc/PID/fd does not tell: the mount may have been detached (umount -l), or be another mount namespace's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.fd import parse_fdinfo
from opskit.proc.files.mountinfo import REMOTE, parse_mountinfo

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS


class FdMounts:
    """The types of the file systems of fds; each mount namespace is read once."""

    def __init__(self, fs: ProcFS) -> None:
        self._fs = fs
        self._types: dict[bytes, dict[str, str]] = {}  # a mount namespace -> its mounts' ids -> their types

    def type_of(self, parts: tuple[object, ...], fd: str) -> str:
        """The type, `ext4`; empty for a mount that the process's mount namespace does not have. Raises OSError, BadInput.

        `parts`: the directory that has `fd` and `fdinfo`: (PID,) or (PID, "task", TID).
        """
        mount_id = self._fs.load(parse_fdinfo, *parts, "fdinfo", fd).get("mnt_id", "")
        namespace = self._fs.link(*parts, "ns", "mnt")
        if namespace not in self._types:
            mounts = self._fs.load(parse_mountinfo, *parts, "mountinfo")
            self._types[namespace] = {str(mount.mount_id): mount.fs_type for mount in mounts}
        return self._types[namespace].get(mount_id, "")

    def is_remote(self, parts: tuple[object, ...], fd: str) -> bool:
        """Whether it is known to be on a network file system. Raises OSError, BadInput."""
        return self.type_of(parts, fd).startswith(REMOTE)
