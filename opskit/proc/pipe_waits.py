"""What threads sleep in at both ends of full pipes.

/proc/PID/task/TID/syscall (Documentation: proc_pid_syscall(5)) is `running`, or the number and the arguments of the
system call that the thread sleeps in:

    1 0x4 0x7f3c2c0008b0 0x10000 0x0 0x0 0x0 0x7ffd1c3c8a88 0x7f3c3a1f2a90
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from opskit.proc.files.status import parse_status
from opskit.proc.fs import optional
from opskit.quantities import hexadecimal, integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opskit.proc.fs import ProcFS
    from opskit.proc.pipe_fill import Fill
    from opskit.proc.pipe_scan import Holder

# read, readv, write, writev, vmsplice, sendfile, splice, wait4: what a thread waits for in each.
_CALLS = ("read", "read", "write", "write", "write", "write", "splice", "wait")
_GENERIC: dict[int | None, str] = dict(zip((63, 65, 64, 66, 75, 71, 76, 260), _CALLS))
_X86_64: dict[int | None, str] = dict(zip((0, 19, 1, 20, 278, 40, 275, 61), _CALLS))
_ANY_CHILD = 0xFFFFFFFF
# poll(), ppoll(), select() and pselect6() of no files are a sleep: the call, and which argument is the number of files.
_GENERIC_POLLS: dict[int | None, int] = {73: 1, 72: 0}
_X86_64_POLLS: dict[int | None, int] = {7: 1, 271: 1, 23: 0, 270: 0}


class Wait(NamedTuple):
    """What a thread does. `call`: read, write, wait (for a child), timer (poll() of no files), other or running.

    `on`: the pipe or file that it reads or writes, or the kernel function that it sleeps in. `times_slept` until now.
    `needs`: processes of which one must act before the wait ends; empty: unknown.
    """

    pid: int
    tid: int
    call: str
    on: bytes = b""
    times_slept: int | None = None
    needs: frozenset[int] = frozenset()


def parse_call(text: str, machine: str = platform.machine()) -> tuple[str, int] | None:
    """(read, write, splice or wait; its fd or child) of a thread that sleeps in such a call; None for any other."""
    words = text.split()
    call = (_X86_64 if machine == "x86_64" else _GENERIC).get(integer(words[0])) if len(words) >= 4 else None
    number = hexadecimal(words[3 if call == "splice" else 1]) if call else None
    return None if call is None or number is None else (call, number)


def is_timer(text: str, machine: str = platform.machine()) -> bool:
    """Whether the call is a sleep by poll() or select(): no file can end it."""
    words = text.split()
    polls = _X86_64_POLLS if machine == "x86_64" else _GENERIC_POLLS
    place = polls.get(integer(words[0])) if len(words) >= 4 else None
    return place is not None and hexadecimal(words[1 + place]) == 0


def _wait_of(fs: ProcFS, pid: int, tid: int, fifos: Mapping[bytes, bytes]) -> Wait:
    text = fs.maybe(str, pid, "task", tid, "syscall", default="")
    if text.startswith("running"):
        return Wait(pid, tid, "running")
    function = optional(fs.read, pid, "task", tid, "wchan", default=b"0").strip()
    status = fs.maybe(parse_status, pid, "task", tid, "status")
    slept = integer(status.fields.get("voluntary_ctxt_switches", "")) if status else None
    call, number = parse_call(text) or ("timer" if is_timer(text) else "other", 0)
    if call == "splice":  # it may wait for its input as well: fs/splice.c, pipe_wait_readable() and others
        call = "write" if function.startswith(b"pipe_") and not function.endswith(b"readable") else "other"
    if call in ("read", "write"):
        on = optional(fs.link, pid, "task", tid, "fd", number, default=b"")
        return Wait(pid, tid, call, fifos.get(on, on), slept)
    needs = _children(fs, pid, number & _ANY_CHILD) if call == "wait" else frozenset()
    return Wait(pid, tid, call, b"" if function == b"0" else function, slept, needs)


def _children(fs: ProcFS, pid: int, number: int) -> frozenset[int]:
    """The children that a thread waits for: all, or that of this PID in its own PID namespace."""
    tids = optional(fs.tids, pid, default=[])
    texts = [fs.maybe(str, pid, "task", tid, "children", default="") for tid in tids]
    pids = [child for text in texts for word in text.split() if (child := integer(word)) is not None]
    if number == _ANY_CHILD:
        return frozenset(pids)
    statuses = {child: fs.maybe(parse_status, child, "status") for child in pids}
    return frozenset(child for child, status in statuses.items() if status and number in status.ns_pids)


def blocked_writers(
    fs: ProcFS, holders: Iterable[Holder], fills: Mapping[bytes, Fill], fifos: Mapping[bytes, bytes]
) -> list[Wait]:
    """The threads that sleep in a write to a pipe that holds data. `fifos`: key by path.

    Needs ptrace rights; nothing is found without.
    """
    found = []
    for holder in holders:
        ends = holder.ends or {}
        if not any(end.write_fds and fills[key].queued_bytes for key, end in ends.items() if key in fills):
            continue
        for tid in [holder.tid] if holder.tid else optional(fs.tids, holder.pid, default=[]):
            call = fs.maybe(parse_call, holder.pid, "task", tid, "syscall")
            if call and call[0] in ("write", "splice"):
                wait = _wait_of(fs, holder.pid, tid, fifos)
                found += [wait] if wait.call == "write" and wait.on in ends else []
    return found


def waits_around(
    fs: ProcFS, holders: Iterable[Holder], blocked: Iterable[Wait], fifos: Mapping[bytes, bytes]
) -> dict[int, list[Wait]]:
    """What each thread does of the processes at both ends of the pipes with blocked writers, and of those they wait for."""
    readers: dict[bytes, set[int]] = {}
    writers: dict[bytes, set[int]] = {}
    for holder in holders:
        for key, end in (holder.ends or {}).items():
            if end.read_fds:
                readers.setdefault(key, set()).add(holder.pid)
            if end.write_fds:
                writers.setdefault(key, set()).add(holder.pid)
    found: dict[int, list[Wait]] = {}
    todo = {pid for wait in blocked for pid in (wait.pid, *readers.get(wait.on, ()))}
    while todo:
        pid = todo.pop()
        found[pid] = waits = []
        for tid in optional(fs.tids, pid, default=[]):
            wait = _wait_of(fs, pid, tid, fifos)
            if wait.call in ("read", "write"):
                others = (writers if wait.call == "read" else readers).get(wait.on, set())
                # Of a pipe that it can write to itself, its own signal handler may do so.
                own = wait.call == "read" and pid in others
                wait = wait._replace(needs=frozenset() if own else frozenset(others))
            waits.append(wait)
        if all(wait.needs for wait in waits):
            todo |= {each for wait in waits for each in wait.needs}.difference(found)
    return found
