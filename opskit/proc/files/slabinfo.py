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

from opskit.errors import BadInput
from opskit.quantities import integers
from opskit.records import NamedTuple

_VERSION = re.compile(r"slabinfo - version: ([0-9.]{1,16})")
_KNOWN = {"1.1", "1.2", "2.0", "2.1"}


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
    if version[1] not in _KNOWN:
        raise BadInput("slabinfo", "unknown version (known are 1.1, 1.2, 2.0 and 2.1)", 1, lines[0])
    parse = _parse_2 if version[1].startswith("2") else _parse_1
    if lines.pop():
        raise BadInput("slabinfo", "cut short: the last line has no end", len(lines) + 1, text[-120:].split("\n")[-1])
    caches = []
    for number, line in enumerate(lines[1:], 2):
        if line.startswith("#"):
            continue
        cache = parse(line)
        if cache is None:
            raise BadInput("slabinfo", "not a cache line (cut short?)", number, line)
        caches.append(cache)
    if not caches:
        raise BadInput("slabinfo", "cut short: it lists no cache", len(lines))
    return caches


def _parse_2(line: str) -> Slab | None:
    groups = line.split(" : ")
    slabdata = next((group.split() for group in groups[1:] if group.lstrip().startswith("slabdata")), [])
    name, numbers = _split(groups[0], 5)
    slabs = integers(slabdata[1:4])
    if len(numbers) != 5 or slabs is None or len(slabs) != 3:
        return None
    active, objects, size, _, pages = numbers
    return Slab(name, active, objects, size, slabs[1], pages)


def _parse_1(line: str) -> Slab | None:
    name, numbers = _split(line.split(" : ")[0], 6)
    if len(numbers) != 6:
        return None
    active, objects, size, _, slabs, pages = numbers
    return Slab(name, active, objects, size, slabs, pages)


def _split(group: str, count: int) -> tuple[str, list[int]]:
    """A name, which may hold spaces, and the numbers after it; no numbers if the form differs."""
    words = group.rsplit(None, count)
    numbers = integers(words[1:]) if len(words) == count + 1 else None
    return (group, []) if numbers is None else (words[0].strip(), numbers)
