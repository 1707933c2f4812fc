"""glibc's arenas in a real process: the truth is its own malloc_info(3)."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time

import pytest

from opskit.proc.files.smaps import parse_smaps
from opskit.proc.fs import ProcFS
from opskit.proc.malloc.allocators import read_malloc
from opskit.proc.memory import ProcessMemory
from opskit.proc.pagemap import PageMap
from opskit.proc.ranges import layered
from opskit.proc.stacks import thread_stacks
from tests.support import nativeprograms


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The compiled program."""
    return nativeprograms.build("arenas.c", tmp_path_factory.mktemp("arenas") / "arenas", "-O1")


@contextlib.contextmanager
def running(program, *words, **options):
    """A process whose arenas are filled: its PID, and what malloc_info wrote."""
    process = subprocess.Popen([program, *map(str, words)], stdout=subprocess.PIPE, text=True, **options)
    try:
        lines = iter(process.stdout.readline, "READY\n")
        yield process.pid, "".join(line for line in lines if line)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def totals(info):
    """malloc_info's sums over all arenas: bytes by type."""
    all_of_them = info.rpartition("</heap>")[2]
    found = re.findall(r'<total type="(\w+)" count="(\d+)" size="(\d+)"', all_of_them)
    sizes = {kind: (int(count), int(size)) for kind, count, size in found}
    return sizes | {"system": int(re.search(r'<system type="current" size="(\d+)"', all_of_them)[1])}


def read(pid, **options):
    """The record and the ranges of a process."""
    fs = ProcFS()
    regions = fs.load(parse_smaps, pid, "smaps")
    known = layered(thread_stacks(fs, pid, regions))
    return read_malloc(fs, pid, regions, ProcessMemory(fs, pid), PageMap(fs, pid), known, **options)


@pytest.mark.parametrize(
    "words",
    [
        (6, 1500, 8000, 8, 30, 1_000_000),  # coalesced to large free chunks
        (3, 20_000, 100, 2, 2, 300_000),  # fastbins, small bins and tcache
        (0, 1, 100, 2, 3, 5_000_000),  # one thread: the main arena alone
        (20, 200, 40_000, 3, 0, 1),  # more threads than arenas
    ],
)
def test_free_memory_is_that_of_malloc_info(program, words):
    """Arenas, taken, free and large blocks: within 1 %."""
    with running(program, *words) as (pid, info):
        found, ranges = read(pid)
    truth = totals(info)
    assert (found.name, found.unknown, found.incomplete) == ("glibc", None, None)
    assert found.arenas == info.count("<heap nr=")
    assert found.system_bytes == truth["system"]
    assert found.free_bytes == pytest.approx(truth["rest"][1] + truth["fast"][1], rel=0.01)
    assert (found.mmapped_blocks, found.mmapped_bytes) == truth["mmap"]
    assert sum(each.kind == "malloc-mmapped" for each in ranges) == truth["mmap"][0]
    assert found.top_bytes <= found.free_bytes
    assert found.resident_free_bytes <= found.free_bytes


def test_freed_pages_are_resident_until_they_are_trimmed(program):
    """What is free and was written is in memory: most of large free chunks."""
    with running(program, 2, 1500, 16_000, 8, 0, 1) as (pid, _):
        found, _ = read(pid)
    assert found.resident_free_bytes > 0.8 * (found.free_bytes - found.top_bytes)


def test_lists_that_change_meanwhile(program):
    """Threads that allocate all the time: at least a part is known, and never more than there is."""
    with running(program, 2, 3000, 2000, 4, 2, 500_000, "busy") as (pid, _):
        for _ in range(5):
            found, _ = read(pid)
            assert found.arenas == 3
            if found.free_bytes is not None:
                assert 0.1 * found.system_bytes < found.free_bytes <= found.system_bytes


def all_sleep(pid):
    """Whether each thread waits in pause(2), as the program does at its end."""
    fs = ProcFS()
    return all(fs.read(pid, "task", tid, "syscall").startswith(b"34 ") for tid in fs.tids(pid))


def test_nothing_is_touched(program):
    """No page more is resident after a look, also not of a stack or an arena."""
    with running(program, 4, 300, 8000, 8, 3, 1_000_000) as (pid, _):
        deadline = time.monotonic() + 10
        while not all_sleep(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        before = ProcFS().load(parse_smaps, pid, "smaps")
        pagemap = PageMap(ProcFS(), pid)
        present = [pagemap.resident_bytes(each.start, each.end) for each in before if each.name != "[vsyscall]"]
        read(pid)
        after = ProcFS().load(parse_smaps, pid, "smaps")
        again = [pagemap.resident_bytes(each.start, each.end) for each in before if each.name != "[vsyscall]"]
    assert sum(each.usage.rss_bytes for each in after) == sum(each.usage.rss_bytes for each in before)
    assert present == again


def test_linked_into_the_program(tmp_path):
    """A static program has glibc's arenas in its own data; they prove that it is glibc."""
    static = nativeprograms.build("arenas.c", tmp_path / "static", "-O1", "-static")
    with running(static, 3, 1000, 8000, 8, 3, 1_000_000) as (pid, info):
        found, _ = read(pid)
    assert found.name == "glibc"
    assert found.free_bytes == pytest.approx(totals(info)["rest"][1], rel=0.01)


def test_musl_by_elimination(tmp_path):
    """The structures of musl say nothing; also where it is linked into the program, and is not recognised."""
    nativeprograms.tool("musl-gcc")
    source = tmp_path / "block.c"
    source.write_text(
        "#include <stdlib.h>\n#include <unistd.h>\nint main(void) { for (;;) { *(char *)malloc(100) = 1; pause(); } }\n"
    )
    for options, name in (((), "musl"), (("-static",), None)):
        nativeprograms.run("musl-gcc", *options, "-o", tmp_path / "block", source)
        with nativeprograms.running(tmp_path / "block") as pid:
            found, ranges = read(pid)
        assert (found.name, found.arenas, ranges) == (name, None, [])
        assert found.unknown.startswith("malloc by elimination: ")


def test_no_right_to_read_the_memory(program):
    """Smaps may be readable where the memory is not: the arenas are unknown."""
    fs = ProcFS()
    with running(program, 1, 10, 100, 2, 0, 1) as (pid, _):
        regions = fs.load(parse_smaps, pid, "smaps")
        found, ranges = read_malloc(fs, pid, regions, None, None)
    assert (found.name, found.arenas, found.unknown, ranges) == ("glibc", None, "its memory cannot be read", [])


def test_a_process_that_ended(program):
    """Its files stay open and are empty: unknown, and no error."""
    fs = ProcFS()
    with running(program, 2, 100, 1000, 2, 1, 500_000) as (pid, _):
        regions = fs.load(parse_smaps, pid, "smaps")
        memory, pagemap = ProcessMemory(fs, pid), PageMap(fs, pid)
    found, ranges = read_malloc(fs, pid, regions, memory, pagemap)
    assert (found.arenas, found.free_bytes, ranges) == (None, None, [])
