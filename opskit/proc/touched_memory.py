"""The memory of a process without a new page for it: a read of /proc/PID/mem would map each page that it has not touched yet."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from opskit.proc.fs import optional
from opskit.proc.mapped_files import paths_of
from opskit.proc.memory import PAGE_BYTES, ProcessMemory
from opskit.proc.pagemap import PageFlags, PageMap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.proc.files.smaps import Region
    from opskit.proc.fs import ProcFS
    from opskit.proc.held_file import HeldFile

_TOUCHED = 64  # of an entry's last byte: in memory (128), or in swap
_MOST_PAGES, _LARGEST_READ = 8192, 1 << 26
_ADDRESSES = 1 << 56


class TouchedMemory:
    """As ProcessMemory, of pages that are in memory or in swap. Other pages of a private mapping of a file are read in the file.

    `regions`: its mappings, sorted. Other pages cannot be read.
    """

    def __init__(self, fs: ProcFS, pid: int, regions: Sequence[Region]) -> None:
        """Raise OSError where it cannot be opened: no ptrace rights, or no such process."""
        self._fs, self._pid = fs, pid
        self._memory = ProcessMemory(fs, pid)
        self.pagemap = PageMap(fs, pid)
        self._flags = PageFlags(self.pagemap)
        self._regions = [
            each for each in regions if each.inode and each.permissions.startswith("r") and _is_private(each)
        ]
        self._starts = [each.start for each in self._regions]
        self._files: dict[int, HeldFile | None] = {}
        self._part_bytes = fs.small_read_bytes  # of a page, or all of it
        self._pages: dict[int, bytes] = {}

    def read(self, address: int, size: int) -> bytes:
        """At most `size` bytes from `address` on."""
        most = self._part_bytes
        number, begin = divmod(address, most)
        if 0 < size <= most - begin:
            page = self._pages.get(number)
            if page is None and self.is_touched(address // PAGE_BYTES):
                if len(self._pages) >= _MOST_PAGES:
                    self._pages.clear()
                page = self._pages[number] = self._memory.read_anew(number * most, most)
            if page is not None:
                return page[begin : begin + size]
        return self._in_parts(address, size)

    def _in_parts(self, address: int, size: int) -> bytes:
        """The same, of touched and other pages."""
        last = (address + size - 1) // PAGE_BYTES
        if not 0 < address < _ADDRESSES or not 0 < size <= _LARGEST_READ:
            return b""
        found, end = b"", address + size
        while address < end:
            page = address // PAGE_BYTES
            is_touched = self.is_touched(page)
            while page < last and self.is_touched(page + 1) == is_touched:
                page += 1
            wanted = min(end, (page + 1) * PAGE_BYTES) - address
            part = self._memory.read(address, wanted) if is_touched else self._in_file(address, wanted)
            found += part
            if len(part) < wanted:
                break
            address += wanted
        return found

    def read_anew(self, address: int, size: int) -> bytes:
        """The same of memory that is known to be touched, without what is kept."""
        return self._memory.read_anew(address, size)

    def is_touched(self, page: int) -> bool:
        """Whether the page of this number is in memory or in swap."""
        return self._flags.of(page) >= _TOUCHED

    def _in_file(self, address: int, size: int) -> bytes:
        """What the process would find there if it touched it: the content of the mapped file."""
        number = bisect_right(self._starts, address) - 1
        if number < 0 or address >= self._regions[number].end:
            return b""
        region = self._regions[number]
        if number not in self._files:
            self._files[number] = self._open(region)
        file = self._files[number]
        if file is None:
            return b""
        wanted = min(size, region.end - address)
        found: bytes = optional(file.read_at, region.offset + address - region.start, wanted, default=b"")
        return found

    def _open(self, region: Region) -> HeldFile | None:
        held = (optional(self._fs.hold_regular, path) for path in paths_of(self._fs, self._pid, region))
        return next((each for each in held if each is not None), None)

    def forget(self) -> None:
        """Read everything anew from now on."""
        self._memory.forget()
        self._flags.forget()
        self._pages.clear()

    def close(self) -> None:
        """Close the fds; the memory is empty from now on."""
        self._memory.close()
        self._pages.clear()
        self.pagemap.close()
        for file in self._files.values():
            if file is not None:
                file.close()
        self._files.clear()


def _is_private(region: Region) -> bool:
    return region.permissions.endswith("p")
