"""A file that is opened once and read many times, such as /proc/PID/mem."""

from __future__ import annotations

import os


class HeldFile:
    """A file that stays open until `close`, or as long as this object lives."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read_at(self, offset: int, size: int) -> bytes:
        """A part of it, fewer bytes at its end or before a hole. Raises OSError."""
        return os.pread(self._fd, size, offset)

    def cached_pages(self) -> int:
        """How many of its pages are in the page cache (cachestat(2), Linux 6.5). Raises OSError."""
        from opskit.proc.kernel.syscalls import cached_pages

        return cached_pages(self._fd)

    def close(self) -> None:
        """Close the fd; reads raise OSError from now on."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()
