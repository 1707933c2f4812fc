"""Which paths a thread looks up, read from its memory right after a system call failed.

The event of a system call's entry has the address of the path, not the path. The thread is not stopped, so its memory may
already hold the next path of the same loop: the paths are examples.
"""

from __future__ import annotations

import errno
import os
import re
import select
import struct
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.proc.fs import READ_ONLY
from opskit.proc.kernel import perf_event as perf
from opskit.proc.kernel.ftrace import parse_path_offset
from opskit.quantities import hexadecimal, integer

if TYPE_CHECKING:
    from collections.abc import Callable

# A call's entry, and right behind it its failure: with one thread traced, nothing else comes between.
_FAILED = re.compile(
    rb": [Ss]y[Ss]_\w+\([^)\n]*?(?:filename|pathname|path|oldname|name): (?:0x)?([0-9a-f]+)[^\n]*\n[^\n]*: [Ss]y[Ss]_\w+ -> 0x"
)
# The memory may be in use for something else by then: only what looks like a path is taken. A single letter is the state word
# of a Python string at that place, more often than a name.
_PATH = re.compile(r"/.*|[^\s\"'`<>|()]{2,}")
_CHUNKS = 16  # a busy thread writes faster than we read
_LONGEST = 4096  # PATH_MAX, its end included
_PAGE = 4096
_PAUSE_S = 0.002
_PEEK_S, _WANTED = 0.15, 3  # for one thread
_RING_PAGES = 2
_LONGEST_RECORD = 128  # an entry with six arguments has 80 bytes
_FRESH_LOOKS = 200
_RAW = struct.Struct("=IH")  # size, and the common type: the event's number
_ADDRESS = struct.Struct("=Q")


def peek_by_instance(instance: str, call: str, tid: int, clock: Callable[[], float]) -> list[str]:
    """A few paths that a thread passes to a system call, from a tracing instance without other events.

    Empty where the kernel does not report the address, the memory must not be read, or the thread makes no such call.
    """

    def begin(undo: ExitStack) -> Callable[[], int | None]:
        entry, exit_ = (f"{instance}/events/syscalls/sys_{side}_{call}" for side in ("enter", "exit"))
        pipe = os.open(f"{instance}/trace_pipe", READ_ONLY)
        undo.callback(os.close, pipe)
        for event, rule in ((exit_, f" && ret == -{errno.ENOENT}"), (entry, "")):
            write_control(f"{event}/filter", f"common_pid == {tid}{rule}")
            undo.callback(write_control, f"{event}/enable", "0")
        for event in (exit_, entry):
            write_control(f"{event}/enable", "1")

        def look() -> int | None:
            addresses = _FAILED.findall(_latest(pipe))
            return hexadecimal(addresses[-1]) if addresses else None

        return look

    return _paths(begin, tid, clock)


def peek_by_perf(tracing: str, call: str, tid: int, clock: Callable[[], float]) -> list[str]:
    """The same as `peek_by_instance` by perf events of that thread alone, which end with this process."""

    def begin(undo: ExitStack) -> Callable[[], int | None]:
        events = f"{tracing}/events/syscalls"
        # Three calls have an older name here.
        name = next((one for one in (call, f"new{call}") if os.path.isdir(f"{events}/sys_enter_{one}")), call)
        offset = parse_path_offset(_text(f"{events}/sys_enter_{name}/format"))
        if offset is None:
            raise NotSupported(f"{call} has no path")
        fds = []
        numbers = [event_number(tracing, f"syscalls/sys_{side}_{name}") for side in ("enter", "exit")]
        for number in numbers:
            fds.append(perf.open_event(perf.Attr(perf.TRACEPOINT, number, 1, perf.RAW, perf.DISABLED), tid, -1))
            undo.callback(os.close, fds[-1])
        entry, exit_ = fds
        ring = perf.Ring(entry, _RING_PAGES)
        undo.callback(ring.close)
        perf.control(exit_, perf.SET_OUTPUT, entry)
        perf.set_filter(exit_, f"ret == -{errno.ENOENT}")
        for fd in (exit_, entry):
            perf.control(fd, perf.ENABLE)
        return lambda: _fresh_address(ring, numbers[0], offset)

    return _paths(begin, tid, clock)


def _paths(begin: Callable[[ExitStack], Callable[[], int | None]], tid: int, clock: Callable[[], float]) -> list[str]:
    """The paths at the addresses that a function made by `begin` gives; those found so far where the thread ends."""
    found: dict[str, None] = {}
    with suppress(OSError, NotSupported), ExitStack() as undo:
        memory = os.open(f"/proc/{tid}/mem", READ_ONLY)
        undo.callback(os.close, memory)
        look = begin(undo)
        end = clock() + _PEEK_S
        while len(found) < _WANTED and clock() < end:
            address = look()
            if address is not None and (path := _string_at(memory, address)) is not None:
                found[path] = None
            select.select([], [], [], _PAUSE_S)
    return list(found)


def event_number(tracing: str, event: str) -> int:
    """The number of a tracepoint (`group/name`) for perf_event_open. Raises OSError, NotSupported."""
    number = integer(_text(f"{tracing}/events/{event}/id").strip())
    if number is None:
        raise NotSupported(f"the tracepoint {event} has no number")
    return number


def _fresh_address(ring: perf.Ring, entry: int, offset: int) -> int | None:
    """The address in the last call that failed; in the next one if the ring is full, since its records are old then."""
    data = ring.read()
    if len(data) < ring.size_bytes - _LONGEST_RECORD:
        return _last_address(data, entry, offset)
    looks = (_last_address(ring.read(), entry, offset) for _ in range(_FRESH_LOOKS))
    return next(filter(None, looks), None)


def _last_address(data: bytes, entry: int, offset: int) -> int | None:
    last = failed = None
    for kind, _, body in perf.records(data):
        if kind != perf.RECORD_SAMPLE:
            continue
        size, number = _RAW.unpack_from(body)
        if number != entry:
            failed = last
        elif 4 + offset + _ADDRESS.size <= len(body) and offset + _ADDRESS.size <= size:
            (last,) = _ADDRESS.unpack_from(body, 4 + offset)
    return failed


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _latest(pipe: int) -> bytes:
    last = b""
    with suppress(BlockingIOError):
        for _ in range(_CHUNKS):
            last = os.read(pipe, 1 << 16) or last
    return last


def _string_at(memory: int, address: int) -> str | None:
    """The C string at an address of another process; None where it does not look like a path."""
    text = b""
    try:
        while b"\0" not in text:
            chunk = os.pread(memory, _PAGE - address % _PAGE, address)  # never across a page that may not be there
            if not chunk or len(text) >= _LONGEST:
                return None
            text += chunk
            address += len(chunk)
        path = text[: text.index(b"\0")].decode()
    except (OSError, UnicodeDecodeError):
        return None
    return path if path.isprintable() and _PATH.fullmatch(path) else None


def write_control(path: str, text: str) -> None:
    """Write to a control file of the tracer. Raises OSError."""
    with open(path, "wb", buffering=0) as file:
        file.write(text.encode())
