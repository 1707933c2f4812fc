"""Allocators and runtimes: by the libraries that are mapped, or by what is linked into the program."""

from __future__ import annotations

import os
import sys

import pytest

from opskit.proc.files.smaps import Region, Usage, parse_smaps
from opskit.proc.fs import ProcFS
from opskit.proc.malloc.allocators import read_malloc
from opskit.proc.malloc.runtimes import Runtime, read_runtime
from opskit.proc.ranges import Range
from tests.support import nativeprograms

SOURCE = "#include <unistd.h>\n%s\nint main(void) { for (;;) pause(); }\n"


def library(name):
    """A mapping of a file."""
    return Region(4096, 8192, "r-xp", 0, 7, name, False, Usage())


@pytest.mark.parametrize(
    ("names", "allocator"),
    [
        (["/lib/x86_64-linux-gnu/libc.so.6"], "glibc"),
        (["/lib64/libc-2.17.so"], "glibc"),
        (["/lib/ld-musl-x86_64.so.1"], "musl"),
        (["/usr/lib/libc.so.6", "/usr/lib/libjemalloc.so.2"], "jemalloc"),
        (["/usr/lib/libc.so.6", "/opt/lib/libtcmalloc_minimal.so.4.5.10"], "tcmalloc"),
        (["/usr/lib/libc.so.6", "/opt/lib/libmimalloc-secure.so.2"], "mimalloc"),
        (["/usr/share/libjemalloc.txt"], None),
        ([], None),
    ],
)
def test_by_its_library(names, allocator):
    """One that replaces malloc counts before the C library."""
    with nativeprograms.running("sleep", 60, settle_s=0) as pid:
        assert read_runtime(ProcFS(), pid, [library(name) for name in names]) == Runtime(allocator, None)


@pytest.mark.parametrize(
    ("symbol", "allocator"),
    [("mallctl", "jemalloc"), ("_rjem_mallctl", "jemalloc"), ("tc_malloc", "tcmalloc"), ("mi_malloc", "mimalloc"), ("my_mi_malloc", "glibc")],
)  # fmt: skip
def test_linked_into_the_program(symbol, allocator, tmp_path):
    """By the functions that it has of one, under their whole names."""
    source = tmp_path / "program.c"
    source.write_text(SOURCE % f"void {symbol}(void) {{}}")
    nativeprograms.run("gcc", "-o", tmp_path / "program", source)
    with nativeprograms.running(tmp_path / "program") as pid:
        fs = ProcFS()
        assert read_runtime(fs, pid, fs.load(parse_smaps, pid, "smaps")) == Runtime(allocator, None)


def test_a_program_that_was_replaced(tmp_path):
    """An update deletes the file of a running program: what it has linked in is known all the same."""
    source = tmp_path / "program.c"
    source.write_text(SOURCE % "void mallctl(void) {}")
    nativeprograms.run("gcc", "-o", tmp_path / "program", source)
    with nativeprograms.running(tmp_path / "program") as pid:
        (tmp_path / "program").unlink()
        fs = ProcFS()
        if not os.access(fs.path(pid, "map_files"), os.R_OK | os.X_OK) or os.geteuid():
            pytest.skip("needs CAP_CHECKPOINT_RESTORE")
        assert read_runtime(fs, pid, fs.load(parse_smaps, pid, "smaps")).allocator == "jemalloc"


def test_our_own_python():
    """CPython, whose objects have a heap beside malloc's, also with its own mimalloc linked in."""
    fs = ProcFS()
    found = read_runtime(fs, os.getpid(), fs.load(parse_smaps, "self", "smaps"))
    assert found.language == ("CPython" if sys.implementation.name == "cpython" else None)
    assert found.allocator in ("glibc", "musl")


def test_a_program_that_cannot_be_read():
    """Its libraries are known all the same."""
    assert read_runtime(ProcFS(), 1 << 30, [library("/lib/libc.so.6")]) == Runtime("glibc", None)


def test_go():
    """Its heap begins at a place of its own, and it has no malloc; with cgo it has glibc's beside."""
    heap = Region(0xC000000000, 0xC000400000, "rw-p", 0, 0, "", False, Usage(rss_bytes=4096))
    named = heap._replace(start=0x7F0000000000, end=0x7F0000001000, name="[anon: Go: gc bits]")
    found, ranges = read_malloc(ProcFS(), 1 << 30, [heap, named], None, None, (), Runtime("Go", "Go"))
    assert (found.name, found.runtime, found.unknown) == ("Go", "Go", None)
    assert ranges == [Range(each.start, each.end, "runtime-heap") for each in (heap, named)]
    found, _ = read_malloc(ProcFS(), 1 << 30, [heap], None, None, (), Runtime("glibc", "Go"))
    assert (found.name, found.runtime, found.unknown) == ("glibc", "Go", "its memory cannot be read")


def test_glibc_names_its_mappings():
    """With the tunable glibc.mem.decorate_maps=1."""
    names = {
        "malloc arena": "malloc-arenas",
        "malloc": "malloc-mmapped",
        "pthread stack: 42": "thread-stacks",
        "loader malloc": "libraries",
    }
    regions = [
        Region(at << 20, (at + 1) << 20, "rw-p", 0, 0, f"[anon: glibc: {name}]", False, Usage())
        for at, name in enumerate(names, 1)
    ]
    _, ranges = read_malloc(ProcFS(), 1 << 30, regions, None, None, (), Runtime("glibc", None))
    assert [each.kind for each in ranges] == [*names.values()]
