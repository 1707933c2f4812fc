"""Slab caches by kind: dentries, inodes of which file system, others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.proc.files.slabinfo import Slab

_DENTRY_NAMES = ("dentry", "dentry_cache")  # the second one up to Linux 2.6.21
_INODES = re.compile(r"(?:(?P<owner>\w+?)_)?(?:inode(?:_cache|_slab|_info|s)?|znode_cache|icache)")
_NOT_INODES = ("fscrypt_inode_info", "jbd2_inode")  # kept beside an inode, and not one for each
_BESIDE = ("lsm_inode_cache",)  # memory of an inode that is another object beside it
_ODD_INODES = {"jfs_ip": "jfs", "jffs2_i": "jffs2", "bdev_cache": "bdev", "xfs_inode": "xfs"}
_OWNERS = {None: "other", "shmem": "tmpfs"}  # other: sysfs, pipes, devices and what has no cache of its own


class Cache(NamedTuple):
    """One slab cache. `kind`: dentry, inode or other; `owner`: the file system of an inode cache.

    `shared_with`: names of other caches that SLUB merged into this one; its bytes are theirs as well.
    """

    name: str
    kind: str
    owner: str | None
    size_bytes: int
    objects: int
    active_objects: int
    object_bytes: int
    shared_with: tuple[str, ...] = ()


class Owned(NamedTuple):
    """The inode caches of one file system together."""

    owner: str
    caches: tuple[str, ...]
    size_bytes: int
    objects: int


def classify(slabs: Sequence[Slab], merged: Mapping[str, tuple[str, ...]], page_bytes: int) -> tuple[Cache, ...]:
    """The caches, largest first. `merged`: other names of each cache, which identify the dentry cache where it has none."""
    unlisted = not any(slab.name in _DENTRY_NAMES for slab in slabs)
    caches = []
    for slab in slabs:
        others = merged.get(slab.name, ())
        kind, owner = _kind(slab.name)
        if unlisted and kind == "other" and any(name in _DENTRY_NAMES for name in others):
            kind = "dentry"
        numbers = (slab.bytes(page_bytes), slab.objects, slab.active_objects, slab.object_bytes)
        caches.append(Cache(slab.name, kind, owner, *numbers, others))
    return tuple(sorted(caches, key=lambda cache: (-cache.size_bytes, cache.name)))


def _kind(name: str) -> tuple[str, str | None]:
    if name in _DENTRY_NAMES:
        return "dentry", None
    if name in _ODD_INODES:
        return "inode", _ODD_INODES[name]
    match = _INODES.fullmatch(name)
    if match is None or name in _NOT_INODES:
        return "other", None
    return "inode", _OWNERS.get(match["owner"], match["owner"])


def of_kind(caches: Sequence[Cache] | None, kind: str) -> list[Cache]:
    """The caches of a kind; none where slabinfo could not be read."""
    return [cache for cache in caches or () if cache.kind == kind]


def count_inodes(caches: Sequence[Cache]) -> int:
    """Inodes in use, of all file systems."""
    return sum(cache.active_objects for cache in of_kind(caches, "inode") if cache.name not in _BESIDE)


def inodes_by_owner(caches: Sequence[Cache]) -> list[Owned]:
    """The inode caches by file system, largest first, without empty ones."""
    groups: dict[str, list[tuple[str, int, int]]] = {}
    for cache in of_kind(caches, "inode"):
        if cache.size_bytes:
            groups.setdefault(cache.owner or "", []).append((cache.name, cache.size_bytes, cache.active_objects))
    found = []
    for owner, members in groups.items():
        names, sizes, counts = zip(*members)
        found.append(Owned(owner, names, sum(sizes), sum(counts)))
    return sorted(found, key=lambda owned: (-owned.size_bytes, owned.owner))
