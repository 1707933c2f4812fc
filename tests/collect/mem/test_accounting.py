"""Rows by kinds: each mapping, each part of one, and the sum of all."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import time

import pytest

from opskit.collect.mem.accounting import account
from opskit.proc.files.smaps import Region, Usage
from opskit.proc.fs import ProcFS
from opskit.proc.memory import PAGE_BYTES
from opskit.proc.pagemap import PageMap
from opskit.proc.ranges import Range

BASE, MIB = 0x7F0000000000, 1 << 20


def region(start, size, name="", permissions="rw-p", rss=None, **usage):
    """One mapping; all of it in memory unless it is said."""
    rss = size if rss is None else rss
    return Region(
        start, start + size, permissions, 0, 7 if name.startswith("/") else 0, name, False,
        Usage(rss_bytes=rss, **{"pss_bytes": rss, "anonymous_bytes": rss, **usage}),
    )  # fmt: skip


class Pages:
    """A pagemap in which these pages are present and these are swapped out."""

    def __init__(self, present=(), swapped=()):
        self.present_pages, self.swapped_pages = set(present), set(swapped)

    def count_bytes(self, start, end, *, exclusive=False):
        pages = set(range(start // PAGE_BYTES, end // PAGE_BYTES))
        return len(pages & self.present_pages) * PAGE_BYTES, len(pages & self.swapped_pages) * PAGE_BYTES

    def resident_bytes(self, start, end):
        return self.count_bytes(start, end)[0]


def kinds(rows):
    """Resident bytes by kind."""
    return {row.kind: row.usage.rss_bytes for row in rows}


@pytest.mark.parametrize(
    ("name", "permissions", "kind"),
    [
        ("[heap]", "rw-p", "malloc-arenas"), ("[stack]", "rw-p", "thread-stacks"), ("[stack:42]", "rw-p", "thread-stacks"),
        ("[vdso]", "r-xp", "kernel"), ("[vvar_vclock]", "r--p", "kernel"), ("[vsyscall]", "--xp", "kernel"),
        ("[anon:pool]", "rw-p", "named"), ("[anon_shmem:x]", "rw-s", "shared-memory"),
        ("/SYSV00000000", "rw-s", "shared-memory"), ("/dev/shm/x", "rw-s", "shared-memory"), ("/memfd:x", "rw-s", "shared-memory"),
        ("/dev/zero", "rw-s", "shared-memory"), ("/memfd:java_heap", "rw-s", "java-heap"), ("/jdk/lib/server/classes.jsa", "rw-p", "cds"),
        ("/usr/lib/libz.so.1", "r--p", "libraries"), ("/usr/bin/x", "r-xp", "libraries"), ("/var/data.sock.db", "rw-s", "mapped-files"),
        ("/[aio]", "rw-s", "kernel"), ("anon_inode:[perf_event]", "rw-s", "kernel"), ("", "rw-p", "unnamed"), ("", "r--p", "unnamed"),
    ],
)  # fmt: skip
def test_the_kind_of_a_mapping(name, permissions, kind):
    """By its name, or that it has none."""
    rows, _ = account([region(BASE, MIB, name, permissions)], [], None)
    assert kinds(rows) == {kind: MIB}


def test_a_program_is_known_by_its_code():
    """Each mapping of a file of which a part is executable; another file without code is a mapped file."""
    parts = [
        region(BASE, MIB, "/opt/tool", "r--p"),
        region(BASE + MIB, MIB, "/opt/tool", "r-xp"),
        region(BASE + 9 * MIB, MIB, "/opt/data", "r--p"),
    ]
    rows, found = account(parts, [], None)
    assert kinds(rows) == {"mapped-files": MIB, "libraries": 2 * MIB}
    assert [(part.kind, part.name, part.usage.rss_bytes) for part in found] == [
        ("libraries", "/opt/tool", 2 * MIB), ("mapped-files", "/opt/data", MIB),
    ]  # fmt: skip


def test_what_follows_a_librarys_data_is_its_bss():
    """Right behind the writable part, and part of the library; not behind a gap, and not what follows it again."""
    library = [region(BASE, MIB, "/lib/a.so", "r-xp"), region(BASE + MIB, MIB, "/lib/a.so")]
    behind = [region(BASE + 2 * MIB, MIB), region(BASE + 3 * MIB, MIB, permissions="rwxp"), region(BASE + 9 * MIB, MIB)]
    rows, found = account(library + behind, [], None)
    assert kinds(rows) == {"libraries": 3 * MIB, "unnamed": 2 * MIB}
    assert [(part.name, part.usage.rss_bytes) for part in found] == [("/lib/a.so", 3 * MIB)]


def test_a_file_of_any_tmpfs_is_shared_memory():
    """By its device; a program on a tmpfs is a program."""
    file = region(BASE, MIB, "/run/x", "rw-s")._replace(device="00:1b")
    program = region(BASE + 9 * MIB, MIB, "/run/program", "r-xp")._replace(device="00:1b")
    rows, _ = account([file, program], [], None, memory_devices=frozenset(["00:1b"]))
    assert kinds(rows) == {"shared-memory": MIB, "libraries": MIB}
    assert kinds(account([file], [], None, memory_devices=frozenset(["00:1c"]))[0]) == {"mapped-files": MIB}


def test_a_mapping_of_several_uses():
    """Divided by the pages that are present; the largest part gets what is left."""
    heap = region(BASE, 16 * MIB, rss=10 * MIB, swap_bytes=2 * PAGE_BYTES, huge_bytes=4 * MIB)
    first = BASE // PAGE_BYTES
    pages = Pages(present=range(first, first + 100), swapped=range(first + 200, first + 201))
    rows, _ = account([heap], [Range(BASE, BASE + MIB, "java-heap"), Range(BASE + MIB, BASE + 2 * MIB, "gc")], pages)
    assert kinds(rows) == {"java-heap": 100 * PAGE_BYTES, "gc": 0, "unnamed": 10 * MIB - 100 * PAGE_BYTES}
    assert {row.kind: row.usage.swap_bytes for row in rows} == {"java-heap": PAGE_BYTES, "gc": 0, "unnamed": PAGE_BYTES}
    assert sum(row.usage.huge_bytes for row in rows) == 4 * MIB
    assert {row.kind: row.reserved_bytes for row in rows} == {"java-heap": MIB, "gc": MIB, "unnamed": 14 * MIB}


def test_pagemap_is_of_later():
    """A part that grew after smaps was read has no more than the mapping had."""
    grown = region(BASE, 4 * MIB, rss=MIB)
    pages = Pages(present=range(BASE // PAGE_BYTES, (BASE + 2 * MIB) // PAGE_BYTES))
    parts = [Range(BASE, BASE + MIB, "metaspace"), Range(BASE + MIB, BASE + 2 * MIB, "gc")]
    rows, _ = account([grown], parts, pages)
    assert kinds(rows) == {"metaspace": MIB // 2, "gc": MIB // 2, "unnamed": 0} or kinds(rows) == {
        "metaspace": MIB // 2, "gc": MIB // 2,
    }  # fmt: skip


def test_without_a_pagemap():
    """The largest part has all: a copy, or a reader without rights."""
    rows, _ = account([region(BASE, 4 * MIB)], [Range(BASE, BASE + 3 * MIB, "java-heap")], None)
    assert kinds(rows)["java-heap"] == 4 * MIB


def test_huge_pages_are_outside_of_rss():
    """Those without a known use are a row of their own; a heap in huge pages is the heap's."""
    pool = region(BASE, 4 * MIB, "/anon_hugepage", rss=0, hugetlb_bytes=4 * MIB)
    heap = region(BASE + 8 * MIB, 2 * MIB, "/memfd:java_heap", "rw-s", rss=0, hugetlb_bytes=2 * MIB)
    rows, _ = account([pool, heap], [Range(heap.start, heap.end, "java-heap")], Pages())
    assert {row.kind: row.usage.hugetlb_bytes for row in rows} == {"java-heap": 2 * MIB, "huge-pages": 4 * MIB}
    assert sum(kinds(rows).values()) == 0


def test_rows_count_their_ranges():
    """Stacks and blocks by ranges, other kinds by mappings; a kind of which nothing is in memory is left out."""
    parts = [region(BASE + at * 2 * MIB, MIB) for at in range(3)]
    reserved = region(BASE + 10 * MIB, 64 * MIB, permissions="---p", rss=0)
    ranges = [Range(BASE, BASE + MIB // 2, "thread-stacks"), Range(BASE + MIB // 2, BASE + MIB, "thread-stacks")]
    rows, _ = account([*parts, reserved], ranges, Pages())
    assert {row.kind: row.items for row in rows} == {"thread-stacks": 2, "unnamed": 3}
    assert account([reserved], [], None)[0] == ()


def test_the_rows_sum_to_the_mappings():
    """Whatever the mappings, the ranges and the pages are: to the byte, for each size, and none below 0."""
    randomly = random.Random(17)  # noqa: S311
    names = ("", "", "[heap]", "/lib/a.so", "/memfd:x", "[anon:y]")
    for _ in range(200):
        regions, at = [], BASE
        for _ in range(randomly.randrange(1, 8)):
            size = randomly.randrange(1, 50) * PAGE_BYTES
            rss = randomly.randrange(size // PAGE_BYTES + 1) * PAGE_BYTES
            swap = randomly.randrange(3) * PAGE_BYTES
            more = {"pss_bytes": rss // 2, "anonymous_bytes": rss, "huge_bytes": rss // 3, "swap_bytes": swap}
            regions.append(region(at, size, randomly.choice(names), rss=rss, **more))
            at += size + randomly.randrange(2) * PAGE_BYTES
        edges = sorted({randomly.randrange(BASE - 100, at + 100) for _ in range(12)})
        ranges = [
            Range(start, end, randomly.choice(("gc", "metaspace"))) for start, end in zip(edges[::2], edges[1::2])
        ]
        everything = range(BASE // PAGE_BYTES, at // PAGE_BYTES)
        pages = Pages(present=[page for page in everything if randomly.random() < 0.5])
        rows, _ = account(regions, ranges, randomly.choice((pages, None)))
        for field in Usage._fields:
            wanted = sum(getattr(each.usage, field) for each in regions)
            assert sum(getattr(row.usage, field) for row in rows) == wanted, field
            assert all(getattr(row.usage, field) >= 0 for row in rows)


@pytest.fixture
def sparse():
    """The address of 16 TiB in this process, of which nothing is in memory."""
    libc, size = ctypes.CDLL(None), 16 << 40
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    at = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, -1, 0)
    if at in (None, ctypes.c_void_p(-1).value):
        pytest.skip("no address space for a mapping of 16 TiB (vm.overcommit_memory=2, or a limit)")
    yield at
    libc.munmap(at, size)


def test_a_sparse_mapping_of_terabytes(sparse):
    """Its pages are not all counted: the sum stays right, and it takes little CPU time."""
    whole = region(sparse, 16 << 40, rss=8 * PAGE_BYTES)
    stack = Range(sparse + (8 << 40), sparse + (8 << 40) + MIB, "thread-stacks")
    before = time.process_time()
    rows, _ = account([whole], [stack], PageMap(ProcFS(), os.getpid()))
    assert time.process_time() - before < 2
    assert sum(kinds(rows).values()) == 8 * PAGE_BYTES


def test_mappings_of_libraries_are_counted():
    """A large .bss, which is a range, does not hide how many mappings of libraries there are."""
    regions = [
        region(BASE, MIB, "/lib/libx.so"),
        region(BASE + MIB, 8 * MIB),
        region(BASE + 16 * MIB, MIB, "/lib/liby.so"),
    ]
    rows, _ = account(regions, [Range(BASE + MIB, BASE + 9 * MIB, "libraries")], None)
    assert [(row.kind, row.items) for row in rows] == [("libraries", 3)]
