"""Memory of this process that it has touched, and has not: what is read stays untouched."""

from __future__ import annotations

import ctypes
import mmap
import os

import pytest

from opskit.host import Host
from opskit.proc.files.smaps import parse_smaps
from opskit.proc.memory import PAGE_BYTES
from opskit.proc.pagemap import PageMap
from opskit.proc.touched_memory import TouchedMemory

PAGES = 200


@pytest.fixture
def fs():
    return Host.at(None, None).fs


@pytest.fixture
def memory(fs):
    """Reads this process's memory; a function, as its mappings are read first."""
    opened = []

    def make():
        opened.append(TouchedMemory(fs, os.getpid(), fs.load(parse_smaps, os.getpid(), "smaps")))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def address_of(mapping):
    return ctypes.addressof(ctypes.c_char.from_buffer(mapping))


def present(fs, start):
    pagemap = PageMap(fs, os.getpid())
    found = pagemap.resident_bytes(start, start + PAGES * PAGE_BYTES)
    pagemap.close()
    return found


@pytest.mark.parametrize("flags", [mmap.MAP_PRIVATE, mmap.MAP_SHARED], ids=["private", "shared"])
def test_anonymous_pages(fs, memory, flags):
    """A page that was never written is not there, and reading it maps none; a read ends before it."""
    mapping = mmap.mmap(-1, PAGES * PAGE_BYTES, flags=flags | mmap.MAP_ANONYMOUS)
    mapping.madvise(mmap.MADV_NOHUGEPAGE)
    mapping[: 2 * PAGE_BYTES] = b"a" * 2 * PAGE_BYTES
    mapping[70 * PAGE_BYTES] = ord("b")
    start, reader = address_of(mapping), memory()
    assert reader.read(start, PAGES * PAGE_BYTES) == b"a" * 2 * PAGE_BYTES
    assert reader.read(start + 2 * PAGE_BYTES - 3, 8) == b"aaa"
    assert reader.read(start + 3 * PAGE_BYTES, 8) == b""
    assert reader.read(start + 70 * PAGE_BYTES, 3) == b"b\0\0"
    assert present(fs, start) == 3 * PAGE_BYTES


def test_pages_of_a_private_file_mapping(fs, memory, tmp_path):
    """What was never touched is read in the file, also when it was deleted; what was changed, in memory."""
    content = bytes(range(256)) * (PAGES * PAGE_BYTES // 256)
    path = tmp_path / "file"
    path.write_bytes(b"?" * PAGE_BYTES + content)
    with open(path, "r+b") as file:
        mapping = mmap.mmap(
            file.fileno(),
            len(content),
            flags=mmap.MAP_PRIVATE,
            prot=mmap.PROT_READ | mmap.PROT_WRITE,
            offset=PAGE_BYTES,
        )
    mapping[100 * PAGE_BYTES] = 255
    start, reader = address_of(mapping), memory()
    before = present(fs, start)
    assert before < len(content)
    assert reader.read(start, len(content)) == content[: 100 * PAGE_BYTES] + b"\xff" + content[100 * PAGE_BYTES + 1 :]
    assert present(fs, start) == before
    assert memory().read(start + 5, 10) == content[5:15]
    if os.geteuid() == 0:  # only root may open the links in map_files
        path.unlink()
        assert memory().read(start + 5, 10) == content[5:15]


@pytest.mark.parametrize(
    ("address", "size"), [(0, 8), (-4096, 8), (1 << 62, 8), (1 << 70, 8), (4096, 0), (4096, -1), (4096, 1 << 40)]
)
def test_what_is_no_memory(memory, address, size):
    """Wild pointers and sizes give nothing."""
    assert memory().read(address, size) == b""


def test_after_the_end(memory):
    """Closed, it is empty."""
    buffer = ctypes.create_string_buffer(b"here")
    reader = memory()
    assert reader.read(ctypes.addressof(buffer), 4) == b"here"
    reader.close()
    assert reader.read(ctypes.addressof(buffer), 4) == b""
