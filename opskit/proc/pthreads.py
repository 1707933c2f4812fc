"""The stacks of threads by glibc's own list of them (nptl/descr.h; 64-bit): also of threads that run, and without guards between stacks.

struct pthread {                          at the upper end of a stack, above the thread's variables
  tcbhead_t header;                       its first and third word are its own address
  list_t list;            at 0x2c0        the next one's list, the one before; a ring with a head in ld.so
  pid_t tid;              at 0x2d0
  ...
  void *stackblock;       differs         where the stack begins, with its guard
  size_t stackblock_size, guardsize;
}

Since 2.42 glibc marks the guards with madvise(2), so that the kernel joins neighbours to one mapping.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.proc.memory import PAGE_BYTES, u64
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opskit.proc.memory import Memory

_LIST_AT = 0x2C0
_HEAD, _BLOCK = struct.Struct("<Q8xQ"), struct.Struct("<3Q")
_DESCRIPTOR_BYTES = 2304
_ALIGNED = 64
_SEARCHED_BYTES = 1 << 20  # above a stack pointer
_MOST_SEARCHED = 4  # stack pointers: a runtime without glibc's threads has no such list
_MOST_THREADS = 1 << 15
_LARGEST_STACK = 1 << 36


class PosixThread(NamedTuple):
    """A thread's descriptor, and the addresses of its stack with the guard below."""

    address: int
    start: int
    end: int


def posix_threads(memory: Memory, pointers: Iterable[int]) -> list[PosixThread]:
    """All threads but the main one, by the list that some of these stack pointers lead to. Empty where there is none.

    `memory` has no absent pages.
    """
    failed: set[int] = set()
    for pointer, _ in zip(pointers, range(_MOST_SEARCHED)):
        for address in _descriptors(memory, pointer):
            found = _in_ring(memory, address, failed)
            if found:
                return found
    return []


def _descriptors(memory: Memory, pointer: int) -> Iterator[int]:
    """Addresses above a stack pointer where a descriptor may be."""
    page = pointer // PAGE_BYTES * PAGE_BYTES
    for begin in range(page, page + _SEARCHED_BYTES, PAGE_BYTES):
        data = memory.read(begin, PAGE_BYTES)
        if len(data) < PAGE_BYTES:
            return
        words = struct.unpack(f"<{PAGE_BYTES // 8}Q", data)
        for at in range(0, len(words) - 2, _ALIGNED // 8):
            address = begin + 8 * at
            if words[at] == words[at + 2] == address > pointer:
                yield address


def _in_ring(memory: Memory, first: int, failed: set[int]) -> list[PosixThread]:
    """The threads of the ring of this one; empty where it does not return to its begin.

    `failed`: what was visited for nothing, which is not visited again; it bounds the cost of many begins.
    """
    found: list[PosixThread] = []
    at, known = first + _LIST_AT, 0
    while at not in failed and len(failed) < _MOST_THREADS:
        failed.add(at)
        thread, known = _thread(memory, at - _LIST_AT, known)
        if thread is not None:
            found.append(thread)
        before, at = at, u64(memory, at) or 0
        if not at or u64(memory, at + 8) != before:
            return []
        if at == first + _LIST_AT:
            return found
    return []


def _thread(memory: Memory, address: int, block_at: int) -> tuple[PosixThread | None, int]:
    """The thread with this descriptor, and where in it the block of its stack is; `block_at`: where it was in another one's.

    None for the head of the list, and for the main thread, whose stack is the kernel's.
    """
    head = memory.read(address, _HEAD.size)
    if len(head) < _HEAD.size or _HEAD.unpack(head) != (address, address):
        return None, block_at
    if block_at:
        data = memory.read(address + block_at, _BLOCK.size)
        span = _stack(address, *_BLOCK.unpack(data)) if len(data) == _BLOCK.size else None
        if span is not None:
            return PosixThread(address, *span), block_at
    data = memory.read(address, _DESCRIPTOR_BYTES)
    words = struct.unpack(f"<{len(data) // 8}Q", data[: len(data) // 8 * 8])
    for number, block in enumerate(zip(words[3:], words[4:], words[5:]), 3):
        span = _stack(address, *block)
        if span is not None:
            return PosixThread(address, *span), 8 * number
    return None, block_at


def _stack(address: int, start: int, size: int, guard: int) -> tuple[int, int] | None:
    """The begin and the end of a stack whose thread's descriptor is near its end."""
    is_pages = not (start % PAGE_BYTES or size % PAGE_BYTES or guard % PAGE_BYTES)
    is_around = 0 < start < address < start + size <= address + _SEARCHED_BYTES
    return (start, start + size) if is_pages and is_around and guard <= size <= _LARGEST_STACK else None
