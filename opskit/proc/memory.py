"""The memory of another process: /proc/PID/mem (proc_pid_mem(5)). Needs ptrace rights; stops nothing.

What is read may change meanwhile and may be hostile: a caller checks every length and pointer that it finds there.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Protocol

from opskit.proc.fs import optional

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.proc.fs import ProcFS
    from opskit.proc.held_file import HeldFile

PAGE_BYTES = 4096
_ADDRESSES = 1 << 63  # pread(2) takes a signed offset
_MOST_PAGES = 8192
_U16, _U32, _U64 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q")


def read_memory(fs: ProcFS, pid: int, address: int, size: int) -> bytes:
    """So many bytes, fewer before a hole; none where nothing is mapped, the process has ended, or rights are missing."""
    if not 0 < address < _ADDRESSES - size:
        return b""
    found: bytes = optional(fs.read_at, fs.path(pid, "mem"), address, size, default=b"")
    return found


class Memory(Protocol):
    """Memory by address. `read` gives fewer bytes before a hole, none where nothing can be read, and never raises."""

    def read(self, address: int, size: int) -> bytes:
        """At most `size` bytes from `address` on."""


class ProcessMemory:
    """The memory of a live process, by an fd that stays open. Small reads take whole pages, which are kept until `forget`.

    Where a capture is made they take less: all that is read is in it.
    """

    def __init__(self, fs: ProcFS, pid: int) -> None:
        """Raise OSError where the memory cannot be opened: no ptrace rights, or no such process."""
        self._file: HeldFile = fs.hold(fs.path(pid, "mem"))
        self._page_bytes = fs.small_read_bytes
        self._pages: dict[int, bytes] = {}

    def read(self, address: int, size: int) -> bytes:
        """At most `size` bytes from `address` on."""
        number, begin = divmod(address, self._page_bytes)
        if begin + size > self._page_bytes or size <= 0:
            return self.read_anew(address, size)
        page = self._pages.get(number)
        if page is None:
            if len(self._pages) >= _MOST_PAGES:
                self._pages.clear()
            page = self._pages[number] = self.read_anew(number * self._page_bytes, self._page_bytes)
        return page[begin : begin + size]

    def read_anew(self, address: int, size: int) -> bytes:
        """The same, without the pages that are kept."""
        if not 0 < address < _ADDRESSES - size or size <= 0:
            return b""
        try:
            return self._file.read_at(address, size)
        except OSError:
            return b""

    def forget(self) -> None:
        """Read everything anew from now on."""
        self._pages.clear()

    def close(self) -> None:
        """Close the fd; the memory is empty from now on."""
        self._pages.clear()
        self._file.close()


class RecordedMemory:
    """Memory that was saved in pages: page number -> its bytes."""

    def __init__(self, pages: Mapping[int, bytes]) -> None:
        self.pages = pages

    def read(self, address: int, size: int) -> bytes:
        """At most `size` bytes from `address` on."""
        found = b""
        while size > len(found) and address >= 0:
            number, begin = divmod(address + len(found), PAGE_BYTES)
            page = self.pages.get(number, b"")
            part = page[begin : begin + size - len(found)]
            found += part
            if begin + len(part) < PAGE_BYTES:
                break
        return found


def u64(memory: Memory, address: int) -> int | None:
    """Eight bytes as an unsigned number; None where they cannot be read."""
    found = memory.read(address, 8)
    return _U64.unpack(found)[0] if len(found) == 8 else None


def u32(memory: Memory, address: int) -> int | None:
    """Four bytes as an unsigned number; None where they cannot be read."""
    found = memory.read(address, 4)
    return _U32.unpack(found)[0] if len(found) == 4 else None


def i32(memory: Memory, address: int) -> int | None:
    """Four bytes as a signed number; None where they cannot be read."""
    found = u32(memory, address)
    return None if found is None else found - ((found & 0x80000000) << 1)


def u16(memory: Memory, address: int) -> int | None:
    """Two bytes as an unsigned number; None where they cannot be read."""
    found = memory.read(address, 2)
    return _U16.unpack(found)[0] if len(found) == 2 else None


def c_string(memory: Memory, address: int, most_bytes: int = 256) -> bytes | None:
    """A string that ends with a zero byte; None where it cannot be read, or is longer than `most_bytes`."""
    found, end, _ = memory.read(address, most_bytes + 1).partition(b"\0")
    return found if end else None
