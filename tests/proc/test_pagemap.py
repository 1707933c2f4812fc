"""pagemap, and memory that is read only where it is present."""

from __future__ import annotations

import ctypes
import mmap
import os

import pytest

from opskit.proc.fs import ProcFS
from opskit.proc.memory import PAGE_BYTES, ProcessMemory
from opskit.proc.pagemap import PageMap, PresentMemory

PAGES = 1200  # many blocks


@pytest.fixture
def area():
    """The address of pages of which the second and the last but one were written."""
    memory = mmap.mmap(-1, PAGES * PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(15)  # MADV_NOHUGEPAGE
    memory[PAGE_BYTES + 8 : PAGE_BYTES + 13] = b"there"
    memory[(PAGES - 2) * PAGE_BYTES] = 1
    held = ctypes.c_char.from_buffer(memory)
    yield ctypes.addressof(held)
    del held
    memory.close()


def test_present(area):
    """One byte for each page."""
    pagemap = PageMap(ProcFS(), os.getpid())
    end = area + PAGES * PAGE_BYTES
    flags = pagemap.present(area, end)
    assert len(flags) == PAGES
    assert [page for page, flag in enumerate(flags) if flag >= 128] == [1, PAGES - 2]
    assert pagemap.resident_bytes(area, end) == 2 * PAGE_BYTES
    assert pagemap.count_bytes(area, end) == (2 * PAGE_BYTES, 0)
    pagemap.close()
    assert pagemap.present(area, end) == b""


def test_the_zero_page_is_not_exclusive(area):
    """A page that was only read is present, but not resident memory of this process."""
    assert ctypes.string_at(area + 5 * PAGE_BYTES, 1) == b"\0"
    pagemap = PageMap(ProcFS(), os.getpid())
    end = area + PAGES * PAGE_BYTES
    assert pagemap.count_bytes(area, end)[0] == 3 * PAGE_BYTES
    assert pagemap.count_bytes(area, end, exclusive=True)[0] == 2 * PAGE_BYTES


def test_absent_pages_are_not_read(area):
    """A read of an absent page is empty, and the page stays absent."""
    pagemap = PageMap(ProcFS(), os.getpid())
    present = PresentMemory(ProcessMemory(ProcFS(), os.getpid()), pagemap)
    assert present.read(area + PAGE_BYTES + 8, 5) == b"there"
    assert present.read(area, 100) == b""
    assert len(present.read(area + PAGE_BYTES, 3 * PAGE_BYTES)) == PAGE_BYTES  # up to the next absent page
    first = area // PAGE_BYTES
    assert present.part(area, 8) == b""
    assert present.part(area + PAGE_BYTES + 8, 5) == b"there"
    assert present.part(area + 2 * PAGE_BYTES - 4, 8) == b""  # the next page is absent
    assert present.next_present(area, area + 4 * PAGE_BYTES) == area + PAGE_BYTES
    assert present.next_present(area + 2 * PAGE_BYTES, area + 3 * PAGE_BYTES) == area + 3 * PAGE_BYTES
    assert present.resident_bytes([(first, first + 1), (first + 1, first + PAGES)]) == 2 * PAGE_BYTES
    present.forget()
    assert pagemap.resident_bytes(area, area + PAGES * PAGE_BYTES) == 2 * PAGE_BYTES
