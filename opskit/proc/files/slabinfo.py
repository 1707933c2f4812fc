"""/proc/slabinfo (slabinfo(5), mm/slab_common.c), versions 1.1 (Linux 2.4) to 2.1 (since 2.6.10); root only.

slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>
ext4_inode_cache  126962 126980   1128   14    4 : tunables    0    0    0 : slabdata   9070   9070      0
dentry            439961 440895    192   21    1 : tunables    0    0    0 : slabdata  20995  20995      0

Versions 1.1 and 1.2 have no slabdata: objects in use, objects, object size, slabs in use, slabs, pages per slab; with
(SMP) and (statistics) more columns follow a colon. A name may hold a space:

slabinfo - version: 1.1 (SMP)
dnotify cache          0      0     20    0    0    1 :  252  126
dentry_cache        5469   5880    128  183  196    1 :  252  126
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.fs import optional
from opskit.quantities import integers
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.fs import ProcFS

_VERSION = re.compile(r"slabinfo - version: ([0-9.]{1,16})")


class Slab(NamedTuple):
    """One cache. `object_bytes`: the size of one object; a slab is `pages_per_slab` contiguous pages."""

    name: str
    active_objects: int
    objects: int
    object_bytes: int
    slabs: int
    pages_per_slab: int

    def bytes(self, page_bytes: int) -> int:
        """The RAM of the cache: whole slabs, free objects included."""
        return self.slabs * self.pages_per_slab * page_bytes


def parse_slabinfo(text: str) -> list[Slab]:
    """The caches, in the file's order. Raises BadInput for another format, a malformed line, a truncated text."""
    lines = text.split("\n")
    version = _VERSION.match(lines[0])
    if version is None:
        raise BadInput("slabinfo", "does not begin with `slabinfo - version:`", 1, lines[0])
    if version[1] not in ("1.1", "1.2", "2.0", "2.1"):
        raise BadInput("slabinfo", "unknown version (known are 1.1, 1.2, 2.0 and 2.1)", 1, lines[0])
    if lines.pop():
        raise BadInput("slabinfo", "cut short: the last line has no end", len(lines) + 1, text[-120:].split("\n")[-1])
    caches = []
    for number, line in enumerate(lines[1:], 2):
        if line.startswith("#"):
            continue
        cache = _parse(line, version[1])
        if cache is None:
            raise BadInput("slabinfo", "not a cache line (cut short?)", number, line)
        caches.append(cache)
    if not caches:
        raise BadInput("slabinfo", "cut short: it lists no cache", len(lines))
    return caches


def _parse(line: str, version: str) -> Slab | None:
    """`name numbers : …`: six numbers; since 2.0 five, and three of the slabs in a group of their own."""
    head, *groups = line.split(" : ")
    old = version.startswith("1")
    words = head.rsplit(None, 6 if old else 5)
    slabdata = next((group.split() for group in groups if group.lstrip().startswith("slabdata")), [])
    numbers = integers(words[1:] if old else words[1:] + slabdata[1:4])
    if numbers is None or len(numbers) != (6 if old else 8):
        return None
    active, objects, size, _, first, second, *rest = numbers
    slabs, pages = (first, second) if old else (rest[0], first)
    return Slab(words[0].strip(), active, objects, size, slabs, pages)


def read_aliases(fs: ProcFS) -> dict[str, str]:
    """Cache name -> the cache that serves it, by the links in /sys/kernel/slab (`dentry -> :at-0000192`).

    SLUB may merge caches of equal object size and flags (Documentation/ABI/testing/sysfs-kernel-slab); slabinfo lists a
    merged cache once, under the first name. Empty where none is merged, or with another allocator.
    """
    links = optional(fs.root_links, "sys", "kernel", "slab", default={})
    return {name: target.rpartition("/")[2] for name, target in links.items()}


def merged_names(aliases: dict[str, str], listed: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Name in slabinfo -> the other names of its cache, sorted; without names that share none."""
    groups: dict[str, set[str]] = {}
    for name, target in aliases.items():
        groups.setdefault(target, {target}).add(name)
    found = {}
    for name in listed:
        group = groups.get(aliases.get(name, name), set())
        found[name] = tuple(sorted(other for other in group - {name} if not other.startswith(":")))
    return {name: others for name, others in found.items() if others}
