"""The space of a file system (statvfs(3))."""

from __future__ import annotations

from opskit.records import NamedTuple


class Space(NamedTuple):
    """Space of a file system. What is free is for unprivileged users; inodes None: not counted. `size_bytes` 0: no limit (tmpfs).

    `reserved_bytes`: free, and only for root (ext4 keeps 5 %).
    """

    read_only: bool
    free_bytes: int
    free_inodes: int | None
    size_bytes: int = 0
    block_bytes: int = 0  # the page size on tmpfs and hugetlbfs
    inodes: int | None = None
    reserved_bytes: int = 0
