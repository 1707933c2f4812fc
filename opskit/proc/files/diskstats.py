"""/proc/diskstats (Documentation/admin-guide/iostats.rst): what each disk and partition did since it was found.

254       0 vda 9969857 2273484 1060605106 12868760 1251887 6090601 305801400 2558461 0 1758248 15896680 5067408 219 275371840 417251 153898 52207

Major, minor, name; reads, merged, sectors, ms; the same of writes; requests in flight, ms with a request, ms of all requests; since
Linux 4.18 discards as reads; since 5.5 flushes and their ms. A sector has 512 bytes on every disk. Requests count when they finish.
"""

from __future__ import annotations

from opskit.quantities import integers
from opskit.records import NamedTuple

SECTOR_BYTES = 512
_FEWEST, _MOST = 14, 20
_WRAPS = 1 << 32  # the kernel prints times as unsigned int


class DiskStat(NamedTuple):
    """One device. Times in ms, of finished requests. Discards and flushes are 0 on kernels that do not count them."""

    major: int
    minor: int
    reads: int
    reads_merged: int
    read_sectors: int
    read_ms: int
    writes: int
    writes_merged: int
    written_sectors: int
    write_ms: int
    in_flight: int
    busy_ms: int
    all_ms: int
    discards: int = 0
    discards_merged: int = 0
    discarded_sectors: int = 0
    discard_ms: int = 0
    flushes: int = 0
    flush_ms: int = 0

    @property
    def finished(self) -> int:
        """Requests of all kinds."""
        return self.reads + self.writes + self.discards + self.flushes

    def since(self, before: DiskStat) -> DiskStat | None:
        """What has been added, with what is in flight now; None: it is another device, or was added anew."""
        if (self.major, self.minor) != (before.major, before.minor) or self.finished < before.finished:
            return None
        times = {name: (getattr(self, name) - getattr(before, name)) % _WRAPS for name in _TIMES}
        counts = {name: max(0, getattr(self, name) - getattr(before, name)) for name in _COUNTS}
        return self._replace(**times, **counts)


_TIMES = ("read_ms", "write_ms", "busy_ms", "all_ms", "discard_ms", "flush_ms")
_COUNTS = (
    "reads", "reads_merged", "read_sectors", "writes", "writes_merged", "written_sectors", "discards", "discards_merged",
    "discarded_sectors", "flushes",
)  # fmt: skip


def parse_diskstats(text: str) -> dict[str, DiskStat]:
    """The devices by name; a line that is cut short, or has no numbers, is left out."""
    found = {}
    for line in text.splitlines():
        words = line.split(None, _MOST)
        numbers = integers([*words[:2], *words[3:_MOST]]) if len(words) >= _FEWEST else None
        if numbers is not None:
            found[words[2]] = DiskStat(*numbers)
    return found
