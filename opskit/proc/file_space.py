"""The space of a file system (statvfs(3))."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    import os

_READ_ONLY = 1  # ST_RDONLY, statvfs(3)


class Space(NamedTuple):
    """Space of a file system. What is free is for unprivileged users; inodes None: not counted. `size_bytes` 0: no limit (tmpfs)."""

    read_only: bool
    free_bytes: int
    free_inodes: int | None
    size_bytes: int = 0
    block_bytes: int = 0  # the page size on tmpfs and hugetlbfs
    inodes: int | None = None

    @classmethod
    def of(cls, found: os.statvfs_result) -> Space:
        """Build it from Python's record."""
        unit, inodes, is_read_only = found.f_frsize, found.f_files or None, bool(found.f_flag & _READ_ONLY)
        left = found.f_favail if inodes else None
        return cls(is_read_only, found.f_bavail * unit, left, found.f_blocks * unit, unit, inodes)
