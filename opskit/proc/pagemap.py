"""/proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst): which pages are in memory, 8 bytes for each page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fs import optional
from opskit.proc.memory import PAGE_BYTES

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS
    from opskit.proc.held_file import HeldFile

_ENTRY_BYTES = 8
_PAGES_AT_ONCE = 1 << 16
_NOT_PRESENT = bytes(range(128))  # bit 63 is the highest of an entry's last byte


class PageMap:
    """The pages of one process. Nothing of its memory is touched: a read of an absent page of /proc/PID/mem would map one."""

    def __init__(self, fs: ProcFS, pid: int) -> None:
        """Raise OSError where it cannot be opened: no ptrace rights, or no such process."""
        self._file: HeldFile = fs.hold(fs.path(pid, "pagemap"))

    def present(self, start: int, end: int) -> bytes:
        """The last byte of the entry of each page from `start` to `end`: 128 or more where the page is in memory. Fewer at an error."""
        page, last = start // PAGE_BYTES, -(-end // PAGE_BYTES)
        found = []
        while page < last:
            count = min(last - page, _PAGES_AT_ONCE)
            data: bytes = optional(self._file.read_at, page * _ENTRY_BYTES, count * _ENTRY_BYTES, default=b"")
            found.append(data[_ENTRY_BYTES - 1 :: _ENTRY_BYTES])
            if len(data) < count * _ENTRY_BYTES:
                break
            page += count
        return b"".join(found)

    def resident_bytes(self, start: int, end: int) -> int:
        """How much of these addresses is in memory."""
        return len(self.present(start, end).translate(None, _NOT_PRESENT)) * PAGE_BYTES

    def close(self) -> None:
        """Close the fd."""
        self._file.close()
