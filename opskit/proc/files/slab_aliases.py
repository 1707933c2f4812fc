"""/sys/kernel/slab (Documentation/ABI/testing/sysfs-kernel-slab): SLUB may merge caches of equal object size and flags.

    dentry -> :at-0000192
    ext4_xattr -> :at-0000192

Every name links to the cache that serves it. /proc/slabinfo lists that cache once, under the first name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fs import optional

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.fs import ProcFS


def read_aliases(fs: ProcFS) -> dict[str, str]:
    """Cache name -> the cache that serves it; empty where none is merged, or with an allocator other than SLUB."""
    links = optional(fs.root_links, "sys", "kernel", "slab", default={})
    return {name: target.rpartition("/")[2] for name, target in links.items()}


def merged_names(aliases: dict[str, str], listed: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Name in slabinfo -> the other names of its cache, sorted; without names that share none."""
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
