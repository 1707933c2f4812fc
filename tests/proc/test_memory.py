"""The memory of a real process: as much as is mapped, and nothing where nothing is."""

from __future__ import annotations

import ctypes
import mmap
import os

import pytest

from opskit.proc.fs import ProcFS
from opskit.proc.memory import read_memory


@pytest.fixture
def page():
    """The address of a page that begins with `begin` and ends with `end`, before a page that cannot be read."""
    libc = ctypes.CDLL(None, use_errno=True)
    area = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    area[:5], area[mmap.PAGESIZE - 3 : mmap.PAGESIZE] = b"begin", b"end"
    buffer = ctypes.c_char.from_buffer(area)
    address = ctypes.addressof(buffer)
    hole = ctypes.c_void_p(address + mmap.PAGESIZE)
    assert libc.munmap(hole, ctypes.c_size_t(mmap.PAGESIZE)) == 0
    yield address
    mapped = libc.mmap(hole, ctypes.c_size_t(mmap.PAGESIZE), 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10, -1, 0)
    assert mapped != -1
    del buffer
    area.close()


def test_what_is_mapped(page):
    """All of it, or the part before a hole."""
    fs, pid = ProcFS(), os.getpid()
    assert read_memory(fs, pid, page, 5) == b"begin"
    assert read_memory(fs, pid, page + mmap.PAGESIZE - 3, 4096) == b"end"
    assert read_memory(fs, pid, page + mmap.PAGESIZE, 8) == b""


@pytest.mark.parametrize("address", [0, 8, (1 << 63) - 1, 1 << 63, (1 << 64) - 8])
def test_no_address(address):
    """The null page, and what no pread(2) takes."""
    assert read_memory(ProcFS(), os.getpid(), address, 8) == b""


def test_no_process():
    """It has ended."""
    assert read_memory(ProcFS(), 1 << 30, 4096, 8) == b""
