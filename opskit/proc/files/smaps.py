"""/proc/PID/smaps and smaps_rollup (Documentation/filesystems/proc.rst): resident memory by mapping, and its sum.

7f1200000000-7f1200021000 rw-p 00000000 00:00 0
Size:                132 kB
Rss:                  16 kB
Pss:                  16 kB
Anonymous:            16 kB
AnonHugePages:         0 kB
Swap:                  0 kB
"""

from __future__ import annotations

import re
from operator import add
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.lines import lines_of
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEAD = (
    r"([0-9a-f]{1,16})-([0-9a-f]{1,16}) ([r-][w-][x-][ps]) ([0-9a-f]{1,16}) ([0-9a-f]+:[0-9a-f]+) ([0-9]{1,20})\s*(.*)"
)
_DELETED = " (deleted)"
# The rest of a line's keys -> the field of Region. Hugetlb pages are in neither Rss nor Pss.
_KEYS = {
    "Rss": "rss_bytes", "Pss": "pss_bytes", "Anonymous": "anonymous_bytes", "AnonHugePages": "huge_bytes",
    "ShmemPmdMapped": "huge_bytes", "FilePmdMapped": "huge_bytes", "Shared_Hugetlb": "hugetlb_bytes",
    "Private_Hugetlb": "hugetlb_bytes", "Swap": "swap_bytes", "Locked": "locked_bytes",
}  # fmt: skip


class Usage(NamedTuple):
    """Resident memory in bytes. `huge_bytes` is a part of `rss_bytes`, `hugetlb_bytes` (reserved huge pages) is not.

    `pss_bytes`: each page divided by the processes that map it; None: unknown. Swap is outside of RSS.
    """

    rss_bytes: int = 0
    pss_bytes: int | None = 0
    anonymous_bytes: int = 0
    huge_bytes: int = 0
    hugetlb_bytes: int = 0
    swap_bytes: int = 0
    locked_bytes: int = 0


_FIELDS = {name: at for at, name in enumerate(Usage._fields)}


class Region(NamedTuple):
    """A mapping: addresses from `start` to below `end`. `name`: the path without ` (deleted)`, `[heap]`, or empty for anonymous memory.

    `device`: of the file's file system, as the kernel writes it: `00:1b`.
    """

    start: int
    end: int
    permissions: str
    offset: int
    inode: int
    name: str
    deleted: bool
    usage: Usage
    device: str = ""


def parse_smaps(text: str) -> list[Region]:
    """The mappings in the order of their addresses; none of a kernel thread or a zombie. Raises BadInput."""
    lines = lines_of(text)
    parsed = re.compile(_HEAD)
    # A kernel writes the same keys for each mapping: columns of lines cost half of what single lines do.
    step = next((at for at in range(1, len(lines)) if parsed.fullmatch(lines[at])), len(lines)) if lines else 1
    heads = [match.groups() for line in lines[::step] if (match := parsed.fullmatch(line))]
    keys = [line.partition(":")[0] for line in lines[:step]]
    is_cut = not all(":" in line for line in lines[1:step])
    if is_cut or len(lines) != step * len(heads) or len({*keys}) < len(keys):
        raise BadInput("smaps", "its mappings do not have the same lines each, or it is cut short", len(lines))
    sums: list[Iterable[int]] = [[0] * len(heads)] * len(Usage._fields)
    for at, key in enumerate(keys):
        if key in _KEYS:
            field = _FIELDS[_KEYS[key]]
            sums[field] = list(map(add, sums[field], _column(lines, at, step, key)))
    found = [_region(head, usage) for head, usage in zip(heads, map(Usage, *sums))]
    regions: list[Region] = []
    for number, region in enumerate(found):
        if not max(region.start, regions[-1].end if regions else 0) < region.end:
            raise BadInput("smaps", "not in the order of addresses", number * step + 1, lines[number * step])
        # Between two reads the kernel goes on behind the last mapping: one that has grown since is written once more.
        while regions and regions[-1].end > region.start:
            regions.pop()
        regions.append(region)
    return regions


def _column(lines: list[str], at: int, step: int, key: str) -> list[int]:
    """One key's values for all mappings; each text is parsed once. Raises BadInput."""
    column = lines[at::step]
    known = {}
    for line in set(column):
        name, _, rest = line.partition(":")
        known[line] = _bytes(rest if name == key else "", line)
    return [known[line] for line in column]


def parse_smaps_rollup(text: str) -> Usage:
    """The sums of all mappings (Linux 4.14). Raises BadInput."""
    sums = dict.fromkeys(Usage._fields, 0)
    for line in lines_of(text):
        key, _, rest = line.partition(":")
        if key in _KEYS:
            sums[_KEYS[key]] += _bytes(rest, line)
    return Usage(**sums)


class Proportional(NamedTuple):
    """Resident memory in bytes, each page divided by the processes that map it. The parts are None before Linux 5.9."""

    total_bytes: int
    anonymous_bytes: int | None
    file_bytes: int | None
    shmem_bytes: int | None


def parse_proportional(text: str) -> Proportional | None:
    """The shares of smaps_rollup; None where it has no Pss. Raises BadInput."""
    wanted = ("Pss", "Pss_Anon", "Pss_File", "Pss_Shmem")
    pairs = ((line, *line.partition(":")[::2]) for line in lines_of(text))
    found = {key: _bytes(rest, line) for line, key, rest in pairs if key in wanted}
    parts = (found.get(key) for key in wanted[1:])
    return Proportional(found["Pss"], *parts) if "Pss" in found else None


def _bytes(rest: str, line: str) -> int:
    words = rest.split()
    value = integer(words[0]) if len(words) == 2 and words[1] == "kB" else None
    if value is None:
        raise BadInput("smaps", "not `Key: number kB`", found=line)
    return value * 1024


def _region(head: tuple[str, ...], usage: Usage) -> Region:
    start, end, permissions, offset, device, inode, name = head
    bare = name.removesuffix(_DELETED)
    addresses = int(start, 16), int(end, 16)  # a number: 16 hexadecimal digits at most
    numbers = int(offset, 16), int(inode)  # a number: as those, and 20 digits
    return Region(*addresses, permissions, *numbers, bare, bare != name, usage, device)
