"""Threads that sleep in open() of a FIFO until another process opens its other end (fifo(7)).

`syscall` of /proc/PID/task/TID has the pointer to the path, which is read from the process's memory; `wchan` proves the FIFO:
wait_for_partner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.status import parse_status
from opskit.proc.files.syscall import parse_syscall
from opskit.proc.fs import optional
from opskit.proc.memory import read_memory
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.fs import ProcFS

_WAITS = (b"wait_for_partner", b"fifo_open")  # fs/pipe.c; the compiler may inline the first into the second
_AT_FDCWD = 0xFFFFFF9C
_LONGEST_PATH = 4096
_RDONLY, _WRONLY, _ACCMODE = 0, 1, 3  # open(2)
# System call -> where among its arguments are: directory, path, flags (None: not one of them); openat2: struct open_how.
_CALLS: dict[str, tuple[int | None, int, int | None]] = {
    "open": (None, 0, 1), "creat": (None, 0, None), "openat": (0, 1, 2), "openat2": (0, 1, 2),
}  # fmt: skip


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


def parse_open(text: str, machine: str) -> OpenCall | None:
    """The arguments of a thread that sleeps in an open call; None for any other."""
    call = parse_syscall(text, machine)
    if call is None or call.name not in _CALLS:
        return None
    at_directory, at_path, at_flags = _CALLS[call.name]
    directory = (_AT_FDCWD if at_directory is None else call.arguments[at_directory]) & 0xFFFFFFFF
    flags = _WRONLY if at_flags is None else call.arguments[at_flags]
    return OpenCall(
        None if directory == _AT_FDCWD else directory, call.arguments[at_path], flags, call.name == "openat2"
    )


def blocked_opens(fs: ProcFS, pids: Iterable[int]) -> list[Opening]:
    """The threads of these processes that sleep in open() of a FIFO. Needs ptrace rights; nothing is found without."""
    found = []
    for pid in pids:
        for tid in optional(fs.tids, pid, default=[]):
            call = parse_open(fs.maybe(str, pid, "task", tid, "syscall", default=""), fs.machine)
            if call and optional(fs.read, pid, "task", tid, "wchan", default=b"").strip() in _WAITS:
                found += [opening] if (opening := _opening(fs, pid, tid, call)) else []
    return found


def _opening(fs: ProcFS, pid: int, tid: int, call: OpenCall) -> Opening | None:
    flags: int | None = call.flags
    if call.how:
        flags = int.from_bytes(read_memory(fs, pid, call.flags, 8), "little") if call.flags else None
    mode = None if flags is None else flags & _ACCMODE
    if mode not in (_RDONLY, _WRONLY):  # O_RDWR never waits
        return None
    status = fs.maybe(parse_status, pid, "task", tid, "status")
    slept = integer(status.fields.get("voluntary_ctxt_switches", "")) if status else None
    return Opening(pid, tid, _path(fs, pid, tid, call), mode == _WRONLY, slept)


def _path(fs: ProcFS, pid: int, tid: int, call: OpenCall) -> bytes | None:
    path, ended, _ = read_memory(fs, pid, call.path, _LONGEST_PATH).partition(b"\0")
    if not path or not ended:
        return None
    if path.startswith(b"/"):
        return path
    below = ("cwd",) if call.directory is None else ("fd", call.directory)
    directory: bytes | None = optional(fs.link, pid, "task", tid, *below)
    return None if directory is None else directory.rstrip(b"/") + b"/" + path.removeprefix(b"./")
