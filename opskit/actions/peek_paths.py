"""Which paths a thread looks for: read from its memory right after the tracer saw it ask.

The event of a system call's entry has the address of the path, not the path. The thread runs on meanwhile (nothing is
stopped), so what lies there may be the next path of the same loop: examples, not a record.
"""

from __future__ import annotations

import errno
import os
import re
import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# A call's entry, and right behind it its failure: with one thread traced, nothing else comes between.
_FAILED = re.compile(
    rb": [Ss]y[Ss]_\w+\([^)\n]*?(?:filename|pathname|path|oldname|name): (?:0x)?([0-9a-f]+)[^\n]*\n[^\n]*: [Ss]y[Ss]_\w+ -> 0x"
)
# The memory may have been used for something else by then: what does not look like a path is none.
_PATH = re.compile(r"/.*|[^\s\"'`<>|()]+")
_CHUNKS = 16  # of what waits; a busy thread writes faster than we read
_LONGEST = 4096  # PATH_MAX, its end included
_PAGE = 4096
_PAUSE_S = 0.002


def peek(instance: str, call: str, tid: int, clock: Callable[[], float], seconds: float, wanted: int) -> list[str]:
    """Up to `wanted` different paths that a thread hands to a system call, in a tracing instance that is otherwise still.

    Empty where the kernel does not tell the address, the memory must not be read, or the thread asks no more.
    """
    entry, exit_ = (f"{instance}/events/syscalls/sys_{side}_{call}" for side in ("enter", "exit"))
    try:
        memory = os.open(f"/proc/{tid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    pipe = os.open(f"{instance}/trace_pipe", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    found: dict[str, None] = {}
    try:
        write_control(f"{entry}/filter", f"common_pid == {tid}")
        write_control(f"{exit_}/filter", f"common_pid == {tid} && ret == -{errno.ENOENT}")
        write_control(f"{exit_}/enable", "1")
        write_control(f"{entry}/enable", "1")
        end = clock() + seconds
        while len(found) < wanted and clock() < end:
            addresses = _FAILED.findall(_latest(pipe))
            path = _string_at(memory, int(addresses[-1], 16)) if addresses else None
            if path is not None:
                found[path] = None
            select.select([], [], [], _PAUSE_S)
    except OSError:  # the thread or its event is gone: what was found until then
        pass
    finally:
        os.close(pipe)
        os.close(memory)
        for event in (entry, exit_):
            try:
                write_control(f"{event}/enable", "0")
            except OSError:
                pass
    return list(found)


def _latest(pipe: int) -> bytes:
    """The last of what waits in the tracer's pipe, as far as we read."""
    last = b""
    for _ in range(_CHUNKS):
        try:
            last = os.read(pipe, 1 << 16) or last
        except BlockingIOError:
            break
    return last


def _string_at(memory: int, address: int) -> str | None:
    """The C string at an address of another process; None where there is none that could be a path."""
    text = b""
    while len(text) < _LONGEST:
        try:
            chunk = os.pread(memory, _PAGE - address % _PAGE, address)  # never across a page that may not be there
        except OSError:
            return None
        before, end, _ = chunk.partition(b"\0")
        text += before
        if end:
            break
        if not chunk:
            return None
        address += len(chunk)
    else:
        return None
    try:
        path = text.decode()
    except UnicodeDecodeError:
        return None
    return path if path.isprintable() and _PATH.fullmatch(path) else None


def write_control(path: str, text: str) -> None:
    """Write to a control file of the tracer. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
