"""Stacks by their stack pointers and their shape."""

from __future__ import annotations

import os
import threading

from opskit.proc.files.smaps import Region, Usage, parse_smaps
from opskit.proc.fs import ProcFS
from opskit.proc.ranges import Range
from opskit.proc.stacks import stacks_at, thread_stacks

BASE, KIB, MIB = 0x7F0000010000, 1 << 10, 1 << 20


def regions(*parts):
    """Mappings that follow each other: (permissions, size[, name])."""
    found, at = [], BASE
    for permissions, size, *name in parts:
        found.append(Region(at, at + size, permissions, 0, 0, name[0] if name else "", False, Usage()))
        at += size
    return found


def spans(found):
    """(begin from BASE, size) of ranges."""
    return [(each.start - BASE, each.end - each.start) for each in found]


def test_the_stack_of_a_stack_pointer():
    """The mapping that has it; not one that no pointer is in and that looks different."""
    there = regions(("---p", 4 * KIB), ("rw-p", 8 * MIB), ("---p", 64 * MIB), ("rw-p", 2 * MIB))
    assert stacks_at(there, [BASE + 8 * MIB]) == [Range(BASE + 4 * KIB, BASE + 4 * KIB + 8 * MIB, "thread-stacks")]


def test_a_running_thread():
    """Nobody knows its stack pointer: its stack has the size of the others, and a small guard."""
    there = regions(
        ("---p", 4 * KIB), ("rw-p", 1 * MIB), ("---p", 4 * KIB), ("rw-p", 1 * MIB), ("---p", 9 * MIB), ("rw-p", 1 * MIB)
    )
    assert spans(stacks_at(there, [BASE + MIB])) == [(4 * KIB, MIB), (MIB + 8 * KIB, MIB)]


def test_no_rights_for_any_stack_pointer():
    """The most frequent size of guarded mappings is that of stacks."""
    there = regions(
        ("---p", 4 * KIB), ("rw-p", 1 * MIB), ("---p", 4 * KIB), ("rw-p", 1 * MIB), ("---p", 4 * KIB), ("rw-p", 5 * MIB)
    )
    assert spans(stacks_at(there, [])) == [(4 * KIB, MIB), (MIB + 8 * KIB, MIB)]
    assert stacks_at(regions(("rw-p", MIB)), []) == []


def test_a_stack_that_was_merged_with_a_neighbour():
    """It has the size of the others, from its guard on."""
    stack = (("---p", 4 * KIB), ("rw-p", 1 * MIB))
    there = regions(*stack, *stack, ("---p", 4 * KIB), ("rw-p", 30 * MIB))
    pointers = [BASE + MIB, BASE + 2 * MIB, BASE + 2 * MIB + 512 * KIB]
    assert [size for _, size in spans(stacks_at(there, pointers))] == [MIB, MIB, MIB]


def test_stacks_with_their_guards_inside():
    """The kernel merges them: a row of equal parts, each with a stack pointer near its end, or of a thread that has ended."""
    (row,) = regions(("rw-p", 40 * MIB))
    for tops in ((8, 16, 24, 32, 40), (16, 40), (10, 30, 40)):
        pointers = [row.start + top * MIB - 5 * KIB for top in tops]
        assert stacks_at([row], pointers) == [Range(row.start, row.end, "thread-stacks")]
    small = regions(("rw-p", 3 * 256 * KIB))
    assert len(stacks_at(small, [BASE + part * 256 * KIB - 3 * KIB for part in (1, 2, 3)])) == 1


def test_a_runtimes_heap_is_no_stack():
    """Go keeps stacks in its heap: several stack pointers in one mapping, or one in an arena that is aligned to 64 MiB."""
    reserved = Region(0x385574000000, 0x385577C00000, "---p", 0, 0, "", False, Usage())
    heap = Region(0x385577C00000, 0x38557B400000, "rw-p", 0, 0, "", False, Usage())
    seen = [0x385577F049D8, 0x385577EAFE68, 0x385577EDFC90, 0x385577EDBE38, 0x385577EFDE38]
    assert stacks_at([reserved, heap], seen) == []
    assert stacks_at([reserved, heap], seen[:2]) == []
    aligned = Region(0xC000000000, 0xC000400000, "rw-p", 0, 0, "", False, Usage())
    assert stacks_at([aligned], [0xC000010000]) == []


def test_pointers_into_nothing():
    """A torn read, a mapping that is gone, a file: no stack."""
    there = regions(("r-xp", MIB, "/bin/x"), ("---p", MIB), ("rw-p", MIB))
    assert stacks_at(there, [0, BASE, BASE + MIB, BASE + 9 * MIB, 1 << 63]) == []
    assert stacks_at([], [BASE]) == []


def test_our_own_threads():
    """The main thread's stack, and that of each other thread."""
    release = threading.Event()
    threads = [threading.Thread(target=release.wait) for _ in range(3)]
    for each in threads:
        each.start()
    try:
        fs = ProcFS()
        mappings = fs.load(parse_smaps, "self", "smaps")
        found = thread_stacks(fs, os.getpid(), mappings)
    finally:
        release.set()
        for each in threads:
            each.join()
    assert len(found) >= 4
    assert {each.kind for each in found} == {"thread-stacks"}
