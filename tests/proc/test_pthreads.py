"""The list of threads of glibc, in real processes and in damaged memory."""

from __future__ import annotations

import struct

import holders
import pytest

from opskit.proc.files.smaps import parse_smaps
from opskit.proc.files.syscall import parse_stack_pointer
from opskit.proc.fs import ProcFS
from opskit.proc.memory import PAGE_BYTES, ProcessMemory, RecordedMemory
from opskit.proc.pagemap import PageMap, PresentMemory
from opskit.proc.pthreads import posix_threads
from opskit.proc.stacks import thread_stacks


@pytest.mark.parametrize("mode", ["threads=20:100", "hugestacks=4", "threads=300:16"])
def test_stacks_of_a_real_process(mode):
    """Each thread's stack is found, with its guard, and no stack twice."""
    fs = ProcFS()
    with holders.native(mode) as held:
        tids = [tid for tid in fs.tids(held.pid) if tid != held.pid]
        read = [fs.load(parse_stack_pointer, held.pid, "task", tid, "syscall") for tid in tids]
        pointers = [each for each in read if each is not None]  # some may still run
        found = posix_threads(ProcessMemory(fs, held.pid), pointers[:1])
        assert len({thread.start for thread in found}) == len(found) == len(tids)
        for pointer in pointers:
            assert any(thread.start < pointer < thread.address < thread.end for thread in found)


def test_a_running_thread_is_found_by_another_one(workload):
    """A thread without a stack pointer in /proc is in the list of the others."""
    jvm = workload("sleep=3", "burn=1:1")
    fs = ProcFS()
    pointers = [fs.maybe(parse_stack_pointer, jvm.pid, "task", tid, "syscall") for tid in fs.tids(jvm.pid)]
    found = posix_threads(ProcessMemory(fs, jvm.pid), [each for each in pointers if each][1:])
    assert len(found) == len(fs.tids(jvm.pid)) - 1  # of the main thread the kernel made the stack


_PAGE = 0x7F0000000000
_AT = _PAGE + 0x400


def _memory(following=None, previous=None, block=(_PAGE - 4 * PAGE_BYTES, 5 * PAGE_BYTES, PAGE_BYTES), me=_AT):
    """A page with a descriptor at _AT."""
    page = bytearray(PAGE_BYTES)
    ring = _AT + 0x2C0
    struct.pack_into("<3Q", page, 0x400, me, 0, me)
    struct.pack_into("<2Q", page, 0x400 + 0x2C0, following or ring, previous or ring)
    struct.pack_into("<3Q", page, 0x400 + 0x690, *block)
    return RecordedMemory({_PAGE // PAGE_BYTES: bytes(page)})


def test_a_thread_alone():
    """Its block and its size are found wherever they are in the descriptor."""
    (found,) = posix_threads(_memory(), [_PAGE + 8])
    assert found == (_AT, _PAGE - 4 * PAGE_BYTES, _PAGE + PAGE_BYTES)


@pytest.mark.parametrize(
    "damage",
    [
        {"following": 8},
        {"following": _PAGE + 0x10},
        {"previous": _PAGE},
        {"me": _AT + 64},
        {"block": (_PAGE + 1, PAGE_BYTES, 0)},
        {"block": (_PAGE - PAGE_BYTES, PAGE_BYTES, 0)},
        {"block": (_PAGE - PAGE_BYTES, 1 << 40, 0)},
        {"block": (_PAGE - PAGE_BYTES, 2 * PAGE_BYTES, 8 * PAGE_BYTES)},
    ],
)
def test_damaged_memory(damage):
    """A ring that leads elsewhere, and a stack that cannot be this thread's, give no thread."""
    assert posix_threads(_memory(**damage), [_PAGE + 8]) == []


@pytest.mark.parametrize("pointer", [0, 8, _AT + 8, 1 << 63, (1 << 64) - 1])
def test_pointers_that_lead_nowhere(pointer):
    """No descriptor above them."""
    assert posix_threads(_memory(), [pointer]) == []


def test_stacks_without_guards():
    """Neighbours that the kernel has joined to one mapping are told apart, with their memory."""
    fs = ProcFS()
    with holders.native("hugestacks=12") as held:
        regions = fs.load(parse_smaps, held.pid, "smaps")
        memory = PresentMemory(ProcessMemory(fs, held.pid), PageMap(fs, held.pid))
        found = [each for each in thread_stacks(fs, held.pid, regions, memory) if each.end - each.start == 2 << 20]
        assert len(found) == 12
        assert all(one.end <= other.start for one, other in zip(found, found[1:]))


class Endless:
    """Hostile memory: a descriptor at each other multiple of 64, and their list has no end. `reads`: how often it was read."""

    reads = 0

    def read(self, address, size):
        self.reads += 1
        if size == 8:
            return self._words(address - address % 64)[address % 64 :][:8]
        parts = (self._words(at) for at in range(address // 64 * 64, address + size, 64))
        return b"".join(parts)[address % 64 :][:size]

    @staticmethod
    def _words(at):
        return struct.pack("<8Q", *((at, 0, at) if at % 128 == 0 else (at + 128, at - 128, 0)), *[0] * 5)


def test_a_list_without_an_end(monkeypatch):
    """However many descriptors there are, so many are read in all."""
    monkeypatch.setattr("opskit.proc.pthreads._MOST_THREADS", 2000)
    there = Endless()
    assert posix_threads(there, [0x7F0000000000, 0x7E0000000000]) == []
    assert there.reads < 20_000
