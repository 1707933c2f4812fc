"""The space of a file system (statvfs(3))."""

from __future__ import annotations

from opskit.records import NamedTuple


class Space(NamedTuple):
    """Space of a file system. What is free is for unprivileged users; inodes None: not counted. `size_bytes` 0: no limit (tmpfs)."""

    read_only: bool
    free_bytes: int
    free_inodes: int | None
    size_bytes: int = 0
    block_bytes: int = 0  # the page size on tmpfs and hugetlbfs
    inodes: int | None = None
