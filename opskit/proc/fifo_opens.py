"""Threads that sleep in open() of a FIFO until another process opens its other end (fifo(7)).

/proc/PID/task/TID/syscall has the pointer to the path, which is read from the process's memory; wchan proves the FIFO:

    257 0xffffff9c 0x557552502908 0x241 0x1b6 0x7f9841ccac70 0x1 0x7ffc11f047b0 0x7f9841bef011
    wait_for_partner
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from opskit.proc.files.status import parse_status
from opskit.proc.fs import optional
from opskit.quantities import hexadecimal, integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.fs import ProcFS

_WAITS = (b"wait_for_partner", b"fifo_open")  # fs/pipe.c; the compiler may inline the first into the second
_AT_FDCWD = 0xFFFFFF9C
_LONGEST_PATH = 4096
_HIGHEST_ADDRESS = 1 << 63
_PAGE_BYTES = 4096  # the smallest of any architecture: a larger page is read in two parts
_RDONLY, _WRONLY, _ACCMODE = 0, 1, 3  # open(2)
# System call -> where among its arguments are: directory, path, flags (None: not one of them); openat2: struct open_how.
_GENERIC: dict[int | None, tuple[int | None, int, int | None]] = {56: (0, 1, 2), 437: (0, 1, 2)}
_X86_64: dict[int | None, tuple[int | None, int, int | None]] = {
    257: (0, 1, 2), 437: (0, 1, 2), 2: (None, 0, 1), 85: (None, 0, None),
}  # fmt: skip
_OPENAT2 = 437


class OpenCall(NamedTuple):
    """The arguments of an open call. `directory`: an fd, None for the working directory; `how`: flags is a pointer to them."""

    directory: int | None
    path: int
    flags: int
    how: bool


class Opening(NamedTuple):
    """A thread that sleeps in open() of a FIFO: to write, or to read. `path` None: its memory could not be read."""

    pid: int
    tid: int
    path: bytes | None
    writes: bool
    times_slept: int | None


def parse_open(text: str, machine: str = platform.machine()) -> OpenCall | None:
    """The arguments of a thread that sleeps in an open call; None for any other."""
    words = text.split()
    place = (_X86_64 if machine == "x86_64" else _GENERIC).get(integer(words[0])) if len(words) >= 7 else None
    if place is None:
        return None
    values = [hexadecimal(word) for word in words[1:7]]
    at_directory, at_path, at_flags = place
    directory = _AT_FDCWD if at_directory is None else values[at_directory]
    path, flags = values[at_path], _WRONLY if at_flags is None else values[at_flags]
    if directory is None or path is None or flags is None:
        return None
    directory &= 0xFFFFFFFF
    return OpenCall(None if directory == _AT_FDCWD else directory, path, flags, integer(words[0]) == _OPENAT2)


def blocked_opens(fs: ProcFS, pids: Iterable[int]) -> list[Opening]:
    """The threads of these processes that sleep in open() of a FIFO. Needs ptrace rights; nothing is found without."""
    found = []
    for pid in pids:
        for tid in optional(fs.tids, pid, default=[]):
            call = fs.maybe(parse_open, pid, "task", tid, "syscall")
            if call and optional(fs.read, pid, "task", tid, "wchan", default=b"").strip() in _WAITS:
                found += [opening] if (opening := _opening(fs, pid, tid, call)) else []
    return found


def _opening(fs: ProcFS, pid: int, tid: int, call: OpenCall) -> Opening | None:
    flags: int | None = call.flags
    if call.how:
        flags = int.from_bytes(_memory(fs, pid, call.flags, 8), "little") if call.flags else None
    mode = None if flags is None else flags & _ACCMODE
    if mode not in (_RDONLY, _WRONLY):  # O_RDWR never waits
        return None
    status = fs.maybe(parse_status, pid, "task", tid, "status")
    slept = integer(status.fields.get("voluntary_ctxt_switches", "")) if status else None
    return Opening(pid, tid, _path(fs, pid, tid, call), mode == _WRONLY, slept)


def _path(fs: ProcFS, pid: int, tid: int, call: OpenCall) -> bytes | None:
    path, ended, _ = _memory(fs, pid, call.path, _LONGEST_PATH).partition(b"\0")
    if not path or not ended:
        return None
    if path.startswith(b"/"):
        return path
    below = ("cwd",) if call.directory is None else ("fd", call.directory)
    directory: bytes | None = optional(fs.link, pid, "task", tid, *below)
    return None if directory is None else directory.rstrip(b"/") + b"/" + path.removeprefix(b"./")


def _memory(fs: ProcFS, pid: int, address: int, size: int) -> bytes:
    """So many bytes of a process's memory, fewer where they end with the page; empty where it cannot be read."""
    if not 0 < address < _HIGHEST_ADDRESS - size:
        return b""
    first = min(size, _PAGE_BYTES - address % _PAGE_BYTES)
    place = fs.path(pid, "mem")
    start: bytes = optional(fs.read_at, place, address, first, default=b"")
    if len(start) < first or first == size or b"\0" in start:
        return start
    rest: bytes = optional(fs.read_at, place, address + first, size - first, default=b"")
    return start + rest
