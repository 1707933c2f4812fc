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
_SET_PERIOD, _SET_FILTER = 0x40082404, 0x40082406
SOFTWARE, TRACEPOINT = 1, 2  # attr.type
CPU_CLOCK, DUMMY = 0, 9  # attr.config of SOFTWARE
# attr.sample_type: the fields of a sample, which come in this order
TID, TIME, RAW = 2, 4, 1 << 10
# attr.flags
DISABLED, EXCLUDE_KERNEL, COMM, TASK, WATERMARK = 1, 1 << 5, 1 << 9, 1 << 13, 1 << 14
# types of records
RECORD_LOST, RECORD_COMM, RECORD_EXIT, RECORD_FORK, RECORD_SAMPLE = 2, 3, 4, 7, 9

_ATTR = struct.Struct("=IIQQQQQIIQQQQIiQIHH")
_HEADER = struct.Struct("=IHH")
_DATA_HEAD = 1024  # in the ring's first page; data_tail is behind it

_libc = ctypes.CDLL(None, use_errno=True)


class Attr(NamedTuple):
    """struct perf_event_attr (112 bytes, Linux 4.8 and later), the fields in use.

    `sample_period`: one in that many events is recorded. `wakeup`: poll() wakes after so many records (WATERMARK: bytes).
    """

    type: int
    config: int
    sample_period: int = 0
    sample_type: int = 0
    flags: int = 0
    wakeup: int = 0

    def pack(self) -> bytes:
        """The bytes of the struct."""
        used = self.type, _ATTR.size, self.config, self.sample_period, self.sample_type, 0, self.flags, self.wakeup
        return _ATTR.pack(*used, *[0] * 11)


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
