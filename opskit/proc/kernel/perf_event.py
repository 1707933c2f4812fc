"""perf_event_open(2): kernel events, counted and recorded in a ring buffer in shared memory.

An event ends with its last fd, so that it never outlives this process.

    fd = open_event(Attr(TRACEPOINT, number, sample_type=TID | RAW), pid=-1, cpu=0)
    ring = Ring(fd, pages=16)
    set_filter(fd, "ret == -2"); control(fd, ENABLE)
    for kind, misc, body in records(ring.read()): …

Records have the machine's byte order; `body` follows the header of eight bytes (type, misc, size). Raises OSError.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import struct
import sys
from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPEN = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "loongarch64": 241, "s390x": 331}
_CLOEXEC = 8
# ioctls; SET_OUTPUT redirects an event into the ring of another one of the same CPU or thread
ENABLE, DISABLE, SET_OUTPUT = 0x2400, 0x2401, 0x2405
_SET_PERIOD, _SET_FILTER, _ID = 0x40082404, 0x40082406, 0x80082407
SOFTWARE, TRACEPOINT = 1, 2  # attr.type
CPU_CLOCK, DUMMY = 0, 9  # attr.config of SOFTWARE
# attr.sample_type: the fields of a sample, which come in this order
IP, TID, TIME, ID, CALLCHAIN, RAW, REGS_USER, STACK_USER = 1, 2, 4, 1 << 6, 1 << 5, 1 << 10, 1 << 12, 1 << 13
# attr.flags
DISABLED, INHERIT, EXCLUDE_KERNEL, EXCLUDE_HV, EXCLUDE_IDLE = 1, 1 << 1, 1 << 5, 1 << 6, 1 << 7
COMM, TASK, WATERMARK, EXCLUDE_CALLCHAIN_USER = 1 << 9, 1 << 13, 1 << 14, 1 << 22
COMM_EXEC, USE_CLOCKID = 1 << 24, 1 << 25
MONOTONIC = 1  # attr.clock
NEVER_WAKE = 0x7FFFFFFF  # attr.wakeup, with WATERMARK
# types of records
RECORD_LOST, RECORD_COMM, RECORD_EXIT, RECORD_THROTTLE, RECORD_UNTHROTTLE = 2, 3, 4, 5, 6
RECORD_FORK, RECORD_SAMPLE = 7, 9
# misc of a record: the mode that a sample was taken in (kernel, user, …); a RECORD_COMM by exec
MODE, KERNEL_MODE, BY_EXEC = 7, 1, 1 << 13

_ATTR = struct.Struct("=IIQQQQQIIQQQQIiQIHH")
_HEADER = struct.Struct("=IHH")
_DATA_HEAD = 1024  # in the ring's first page; data_tail is behind it

_libc = ctypes.CDLL(None, use_errno=True)


class Attr(NamedTuple):
    """struct perf_event_attr (112 bytes, Linux 4.8 and later), the fields in use.

    `sample_period`: one in that many events is recorded. `wakeup`: poll() wakes after so many records (WATERMARK: bytes).
    `registers`: of user mode, a bit each (arch/x86/include/uapi/asm/perf_regs.h). `stack_bytes`: of the user stack, a
    multiple of 8 below 64 KiB. `clock`: of the times, with USE_CLOCKID.
    """

    type: int
    config: int
    sample_period: int = 0
    sample_type: int = 0
    flags: int = 0
    wakeup: int = 0
    registers: int = 0
    stack_bytes: int = 0
    clock: int = 0

    def pack(self) -> bytes:
        """The bytes of the struct."""
        used = self.type, _ATTR.size, self.config, self.sample_period, self.sample_type, 0, self.flags, self.wakeup
        user = self.registers, self.stack_bytes, self.clock
        return _ATTR.pack(*used, *[0] * 4, *user, *[0] * 4)


def open_event(attr: Attr, pid: int, cpu: int) -> int:
    """An fd of the event of a thread (cpu -1: on any CPU) or of a CPU (pid -1: of any process; needs CAP_PERFMON)."""
    number = _OPEN.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, "the number of perf_event_open is unknown for this architecture")
    packed = ctypes.create_string_buffer(attr.pack(), _ATTR.size)
    fd: int = _libc.syscall(ctypes.c_long(number), packed, *map(ctypes.c_long, (pid, cpu, -1, _CLOEXEC)))
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return fd


def control(fd: int, action: int, argument: int = 0) -> None:
    """ENABLE an event, DISABLE it (its count and records stay), or SET_OUTPUT to the fd `argument`."""
    fcntl.ioctl(fd, action, argument)


def set_filter(fd: int, text: str) -> None:
    """Filter a tracepoint's event by its fields, in the syntax of ftrace's filters."""
    fcntl.ioctl(fd, _SET_FILTER, bytearray(text.encode() + b"\0"))


def set_period(fd: int, events: int) -> None:
    """Record one in `events` from now on."""
    fcntl.ioctl(fd, _SET_PERIOD, struct.pack("=Q", events))


def event_id(fd: int) -> int:
    """What its samples have in the field ID, also those of the threads that inherited it."""
    return int.from_bytes(fcntl.ioctl(fd, _ID, bytes(8)), sys.byteorder)


def close(fd: int) -> None:
    """End an event."""
    os.close(fd)


def count(fd: int) -> int:
    """The number of events, recorded or not."""
    return int.from_bytes(os.read(fd, 8), sys.byteorder)


class Ring:
    """The records of an event. The kernel drops what does not fit, and counts it (RECORD_LOST)."""

    def __init__(self, fd: int, pages: int) -> None:
        """`pages` for the data: a power of two."""
        self.size_bytes = pages * mmap.PAGESIZE
        self._map = mmap.mmap(fd, mmap.PAGESIZE + self.size_bytes)
        # One load of eight bytes (struct's standard formats read bytewise): the kernel writes the head meanwhile.
        self._meta = memoryview(self._map)[_DATA_HEAD : _DATA_HEAD + 16].cast("Q")
        self.fill = 0.0

    def read(self) -> bytes:
        """All waiting records; frees their space."""
        head, tail = self._meta[0], self._meta[1]
        if head == tail:
            return b""
        base = mmap.PAGESIZE
        begin, end = base + tail % self.size_bytes, base + head % self.size_bytes
        data = self._map[begin:end] if begin < end else self._map[begin:] + self._map[base:end]
        self._meta[1] = head
        return data

    def waiting(self) -> Iterator[tuple[int, int, bytes | mmap.mmap, int, int]]:
        """(type, misc, buffer, begin, end) of each waiting record's body, in place: only one that wraps is copied.

        The space is freed when the last record was taken; `self.fill` is its share of the ring.
        """
        meta, data, total, base = self._meta, self._map, self.size_bytes, mmap.PAGESIZE
        head, at = meta[0], meta[1]
        self.fill = (head - at) / total
        unpack, head_bytes = _HEADER.unpack_from, _HEADER.size
        while at < head:
            begin = at % total
            kind, misc, size = unpack(data, base + begin)  # records are aligned to 8 bytes: a header never wraps
            if size < head_bytes or at + size > head:  # never seen; guarantees that the loop ends
                break
            if begin + size <= total:
                yield kind, misc, data, base + begin + head_bytes, base + begin + size
            else:
                whole = data[base + begin :] + data[base : base + begin + size - total]
                yield kind, misc, whole, head_bytes, size
            at += size
        meta[1] = head

    def close(self) -> None:
        """Unmap it; the caller closes the event's fd."""
        self._meta.release()
        self._map.close()


def records(data: bytes) -> Iterator[tuple[int, int, memoryview]]:
    """(type, misc, body) of each record in the data of a ring."""
    view, at, end = memoryview(data), 0, len(data)
    unpack = _HEADER.unpack_from
    while at + _HEADER.size <= end:
        kind, misc, size = unpack(data, at)
        if size < _HEADER.size or at + size > end:  # never seen; guarantees that the loop ends
            return
        yield kind, misc, view[at + _HEADER.size : at + size]
        at += size
