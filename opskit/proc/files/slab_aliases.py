"""/sys/kernel/slab (Documentation/ABI/testing/sysfs-kernel-slab): under SLUB, caches of one shape may be merged.

    dentry -> :at-0000192
    ext4_xattr -> :at-0000192

Every name is a link to the cache that serves it; /proc/slabinfo lists that cache once, under the name that came first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fs import DENIED, GONE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.fs import ProcFS


def read_aliases(fs: ProcFS) -> dict[str, str]:
    """Cache name -> what serves it; empty where nothing is merged, or with another allocator than SLUB."""
    try:
        links = fs.root_links("sys", "kernel", "slab")
    except (*GONE, DENIED, NotADirectoryError):
        return {}
    return {name: target.rpartition("/")[2] for name, target in links.items()}


def merged_names(aliases: dict[str, str], listed: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """For each name that slabinfo lists: the other names that share its cache, sorted. Names that share none are left out."""
    groups: dict[str, set[str]] = {}
    for name, target in aliases.items():
        groups.setdefault(target, {target}).add(name)
    found = {}
    for listed_name in listed:
        group = groups.get(aliases.get(listed_name, listed_name), set())
        others = tuple(sorted(name for name in group - {listed_name} if not name.startswith(":")))
        if others:
            found[listed_name] = others
    return found
