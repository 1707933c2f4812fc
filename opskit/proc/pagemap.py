"""/proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst): which pages are in memory, 8 bytes for each page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fs import optional
from opskit.proc.memory import PAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opskit.proc.fs import ProcFS
    from opskit.proc.held_file import HeldFile
    from opskit.proc.memory import ProcessMemory

_ENTRY_BYTES = 8
_PAGES_AT_ONCE, _SEARCHED_BYTES = 1 << 16, 16 << 30
BLOCK_PAGES, _MOST_BLOCKS, _ADDRESSES = 64, 1 << 18, 1 << 56
PRESENT = 128
_IS_PRESENT = bytes(PRESENT) + b"\1" * PRESENT
_NOT_PRESENT = bytes(range(PRESENT))  # bit 63 is the highest of an entry's last byte
# Below it, bit 62: swapped out. 61: of a file or shared memory. 56: mapped by this process alone (Linux 4.2).
_NOT_SWAPPED = bytes(each for each in range(256) if not 64 <= each < 128)
_NOT_EXCLUSIVE = bytes(each for each in range(256) if each < 128 or not each & 0x21)


class PageMap:
    """The pages of one process. Nothing of its memory is touched: a read of an absent page of /proc/PID/mem would map one."""

    def __init__(self, fs: ProcFS, pid: int) -> None:
        """Raise OSError where it cannot be opened: no ptrace rights, or no such process."""
        self._file: HeldFile = fs.hold(fs.path(pid, "pagemap"))

    def present(self, start: int, end: int) -> bytes:
        """The last byte of the entry of each page from `start` to `end`: 128 or more where the page is in memory. Fewer at an error."""
        page, last = start // PAGE_BYTES, -(-end // PAGE_BYTES)
        return self._part(page, last - page) if last - page <= _PAGES_AT_ONCE else b"".join(self._parts(start, end))

    def _parts(self, start: int, end: int) -> Iterator[bytes]:
        """The same, so many pages at once: a mapping may have billions, of which few are in memory."""
        page, last = start // PAGE_BYTES, -(-end // PAGE_BYTES)
        while page < last:
            count = min(last - page, _PAGES_AT_ONCE)
            part = self._part(page, count)
            yield part
            if len(part) < count:
                return
            page += count

    def _part(self, page: int, count: int) -> bytes:
        data: bytes = optional(self._file.read_at, page * _ENTRY_BYTES, count * _ENTRY_BYTES, default=b"")
        return data[_ENTRY_BYTES - 1 :: _ENTRY_BYTES]

    def count_bytes(self, start: int, end: int, *, exclusive: bool = False) -> tuple[int, int]:
        """How much of these addresses is in memory, and how much is swapped out.

        `exclusive`: without the pages that other processes have too. The zero page, which is not resident memory, is such a page.
        """
        absent = _NOT_EXCLUSIVE if exclusive else _NOT_PRESENT
        resident = swapped = 0
        for flags in self._parts(start, end):
            resident += len(flags.translate(None, absent))
            swapped += len(flags.translate(None, _NOT_SWAPPED))
        return resident * PAGE_BYTES, swapped * PAGE_BYTES

    def has_exclusive(self, start: int, end: int) -> bool:
        """Whether a page of these addresses, of the first 16 GiB, is known to be mapped by this process alone (Linux 4.2)."""
        parts = self._parts(start, min(end, start + _SEARCHED_BYTES))
        return any(flags.translate(None, _NOT_EXCLUSIVE) for flags in parts)

    def resident_bytes(self, start: int, end: int) -> int:
        """How much of these addresses is in memory."""
        return self.count_bytes(start, end)[0]

    def close(self) -> None:
        """Close the fd."""
        self._file.close()


class PageFlags:
    """The last byte of the entry of single pages, by their numbers. Entries are read in blocks, which are kept until `forget`."""

    def __init__(self, pagemap: PageMap) -> None:
        self._pagemap = pagemap
        self._blocks: dict[int, bytes] = {}

    def of(self, page: int) -> int:
        """As PageMap.present has it; 0 where it cannot be read."""
        try:
            return self._blocks[page // BLOCK_PAGES][page % BLOCK_PAGES]
        except KeyError:
            block, at = self.block(page // BLOCK_PAGES), page % BLOCK_PAGES
            return block[at] if at < len(block) else 0
        except IndexError:
            return 0

    def block(self, number: int) -> bytes:
        """Those of BLOCK_PAGES pages; fewer at an error."""
        block = self._blocks.get(number)
        if block is None:
            if len(self._blocks) >= _MOST_BLOCKS:
                self._blocks.clear()
            begin = number * BLOCK_PAGES * PAGE_BYTES
            is_address = 0 <= begin < _ADDRESSES
            block = self._pagemap.present(begin, begin + BLOCK_PAGES * PAGE_BYTES) if is_address else b""
            self._blocks[number] = block
        return block

    def forget(self) -> None:
        """Read everything anew from now on."""
        self._blocks.clear()


class PresentMemory:
    """The memory of a process where its pages are present: a read of an absent page is empty, and maps nothing there."""

    def __init__(self, memory: ProcessMemory, pagemap: PageMap) -> None:
        self._memory, self._flags = memory, PageFlags(pagemap)

    def read(self, address: int, size: int) -> bytes:
        """At most `size` bytes from `address` on, up to the first absent page."""
        first, last = address // PAGE_BYTES, (address + max(size, 1) - 1) // PAGE_BYTES
        for page in range(first, last + 1):
            if self._flags.of(page) < PRESENT:
                size = page * PAGE_BYTES - address
                break
        return self._memory.read(address, size) if size > 0 else b""

    def part(self, address: int, size: int) -> bytes:
        """So many bytes of one page, or of two, read anew; empty where one is absent."""
        first, last = address // PAGE_BYTES, (address + size - 1) // PAGE_BYTES
        if self._flags.of(first) < PRESENT or (first != last and self._flags.of(last) < PRESENT):
            return b""
        return self._memory.read_anew(address, size)

    def next_present(self, start: int, end: int) -> int:
        """The first present page from `start` on, which begins a page, or the end of its block where there is none before; at most `end`."""
        number, at = divmod(start // PAGE_BYTES, BLOCK_PAGES)
        found = self._flags.block(number).translate(_IS_PRESENT).find(1, at)
        return min(end, (number * BLOCK_PAGES + (found if found >= 0 else BLOCK_PAGES)) * PAGE_BYTES)

    def resident_bytes(self, spans: Iterable[tuple[int, int]]) -> int:
        """How much of these pages, from one number to below another, is in memory: of the first 64 GiB, if they are more."""
        block, found, left = self._flags.block, 0, _MOST_BLOCKS
        for first, end in spans:
            while first < end and left:
                left -= 1
                at = first % BLOCK_PAGES
                flags = block(first // BLOCK_PAGES)[at : at + end - first]
                found += len(flags.translate(None, _NOT_PRESENT))
                first += BLOCK_PAGES - at
        return found * PAGE_BYTES

    def forget(self) -> None:
        """Read everything anew from now on."""
        self._flags.forget()
        self._memory.forget()
