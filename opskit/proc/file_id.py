"""A file by its stat(2), and whether it may be read that others chose."""

from __future__ import annotations

import errno
import os
import stat

from opskit.proc.file_space import Space
from opskit.records import NamedTuple

_KINDS = {stat.S_IFREG: "plain file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symbolic link", stat.S_IFIFO: "FIFO", stat.S_IFSOCK: "socket"}  # fmt: skip


def kind_of(mode: int) -> str:
    """The file type in words."""
    return _KINDS.get(stat.S_IFMT(mode), "device")


class FileId(NamedTuple):
    """A file by its stat: device and inode identify it."""

    device: int
    inode: int
    mode: int
    uid: int
    gid: int = 0
    links: int = 1
    size_bytes: int = 0
    ctime_ns: int = 0
    allocated_bytes: int = 0  # of a disk; of tmpfs, memory and swap
    mtime_ns: int = 0

    @classmethod
    def of(cls, found: os.stat_result) -> FileId:
        """Build it from Python's record."""
        return cls(
            found.st_dev, found.st_ino, found.st_mode, found.st_uid, found.st_gid, found.st_nlink, found.st_size,
            found.st_ctime_ns, found.st_blocks * 512, found.st_mtime_ns,
        )  # fmt: skip


def check_untrusted(found: FileId, path: str, limit_bytes: int) -> None:
    """Raise OSError: ELOOP for a link, EINVAL for other files that are not regular, EFBIG above the limit."""
    if stat.S_ISLNK(found.mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if not stat.S_ISREG(found.mode):
        raise OSError(errno.EINVAL, "is not a regular file", path)
    if found.size_bytes > limit_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)


def space_of(found: os.statvfs_result) -> Space:
    """The record of Python's."""
    unit, inodes, is_read_only = found.f_frsize, found.f_files or None, bool(found.f_flag & os.ST_RDONLY)
    left = found.f_favail if inodes else None
    reserved = max(0, found.f_bfree - found.f_bavail) * unit
    return Space(is_read_only, found.f_bavail * unit, left, found.f_blocks * unit, unit, inodes, reserved)
