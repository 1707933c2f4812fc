"""/proc/PID/maps: libraries, gaps, arenas, stacks."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limitcases import PYTHON

from opskit.errors import BadInput
from opskit.proc.files.maps import locks_new_mappings, parse_maps

SAMPLE = """\
55f0c8a00000-55f0c8a02000 r--p 00000000 fe:00 1310                       /usr/bin/java with spaces
7f1200000000-7f1200021000 rw-p 00000000 00:00 0
7f1200021000-7f1204000000 ---p 00000000 00:00 0
7f1210000000-7f1210001000 ---p 00000000 00:00 0
7f1210001000-7f1210801000 rw-p 00000000 00:00 0                          [anon:stack]
7f1220000000-7f1220200000 r-xp 00000000 fe:00 1311                       /usr/lib/libc.so.6
7f1230000000-7f1230200000 r-xp 00000000 fe:00 1312                       /jdk/lib/server/libjvm.so
7ffd3c1e0000-7ffd3c201000 rw-p 00000000 00:00 0                          [stack]
7ffd3c2f0000-7ffd3c2f2000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
"""


def test_the_sample():
    """All fields of the record."""
    space = parse_maps(SAMPLE)
    assert (space.maps, space.arenas, space.guarded, space.top) == (9, 1, (8 << 20,), 1 << 47)
    assert (space.glibc, space.jvm, space.musl, space.allocator) == (
        "/usr/lib/libc.so.6",
        "/jdk/lib/server/libjvm.so",
        False,
        None,
    )
    assert space.gaps[0] == (0x7F1220200000, 0x7F1230000000)
    assert space.gaps[-1] == (0x10000, 0x55F0C8A00000)


@pytest.mark.parametrize(
    ("path", "glibc", "musl"),
    [
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", True, False),
        ("/lib64/libc-2.17.so", True, False),
        ("/lib/ld-musl-x86_64.so.1", False, True),
        ("/usr/lib/x86_64-linux-musl/libc.so", False, True),
        ("/usr/lib/libcurl.so.4", False, False),
    ],
)
def test_which_libc(path, glibc, musl):
    """By the library's name; none for static programs."""
    space = parse_maps(f"7f1220000000-7f1220200000 r-xp 00000000 fe:00 1311 {path}\n")
    assert (space.glibc is not None, space.musl) == (glibc, musl)


def test_an_address_space_of_32_bits():
    """By its top."""
    assert parse_maps("f7000000-f7001000 r-xp 0 0:0 0\nffd00000-ffd21000 rw-p 0 0:0 0 [stack]\n").top == 1 << 32


def test_a_kernel_thread_has_none():
    """An empty file."""
    assert parse_maps("") is None


@pytest.mark.parametrize("text", ["x\n", "55f0-55f1\n", "nothing like a mapping at all here\n", "zz-yy r 0 0 0 0\n"])
def test_garbage_is_refused(text):
    """With its line."""
    with pytest.raises(BadInput, match="maps:1"):
        parse_maps(text)


@given(st.text(max_size=200))
def test_never_anything_but_a_result_or_bad_input(text):
    """Any text."""
    try:
        parse_maps(text)
    except BadInput:
        pass


@pytest.mark.parametrize(
    ("permissions", "name", "flags", "seen"),
    [
        ("---p", "", "mr mw me lo ac", True),
        ("rw-p", "[heap]", "rd wr mr mw me lo ac", True),
        ("rw-p", "", "rd wr mr mw me lo ac", False),  # somebody's mlock() of a buffer
        ("---p", "", "mr mw me ac", False),
    ],
)
def test_whether_new_mappings_are_locked(permissions, name, flags, seen):
    """Guard pages and the heap are locked by mlockall(MCL_FUTURE) alone."""
    smaps = f"7f1200021000-7f1204000000 {permissions} 00000000 00:00 0 {name}\nLocked: 4 kB\nVmFlags: {flags}\n"
    assert locks_new_mappings(smaps) == seen


@pytest.mark.parametrize(
    ("start", "writable", "size", "count"),
    [
        (0x7F1200000000, 0x21000, 64 << 20, 1),
        (0x7F1200000000, 0x21000, (64 << 20) + 0x1000, 1),  # with the guard page of the stack above it
        (0x7F1201000000, 0x21000, 64 << 20, 0),
        (0xFC000000, 0x21000, 64 << 20, 0),  # a JVM's heap with compressed references
        (0x7F1200000000, 80 << 20, 1 << 30, 0),  # a JVM's large heap
    ],
)
def test_what_is_an_arena(start, writable, size, count):
    """At a multiple of 64 MiB where the kernel puts mappings, the writable part at its beginning, and less than all of it."""
    middle, end = start + writable, start + size
    arena = f"{start:x}-{middle:x} rw-p 00000000 00:00 0\n{middle:x}-{end:x} ---p 00000000 00:00 0\n"
    assert parse_maps(arena + "7ffd3c1e0000-7ffd3c201000 rw-p 00000000 00:00 0 [stack]\n").arenas == count


def test_it_counts_as_the_kernel_does():
    """A real process: lines but vsyscall; arenas and stacks of threads that malloc'ed."""
    code = "import threading,time\nfor _ in range(3): threading.Thread(target=time.sleep, args=(99,)).start()\nprint(flush=True)"
    with subprocess.Popen([PYTHON, "-c", code], stdout=-1) as process:
        process.stdout.readline()
        text = Path(f"/proc/{process.pid}/maps").read_text()
        process.kill()
    space = parse_maps(text)
    assert space.maps == len([line for line in text.splitlines() if "vsyscall" not in line])
    assert space.arenas == 3
    assert space.guarded.count(resource_stack()) == 3


def resource_stack():
    """This machine's default stack in bytes."""
    soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return 2 << 20 if soft == resource.RLIM_INFINITY else soft
