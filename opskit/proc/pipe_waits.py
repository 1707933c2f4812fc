"""What threads sleep in at both ends of full and of empty pipes: by `syscall` and `wchan` of /proc/PID/task/TID."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.proc.files.fd import PIPE_PREFIX
from opskit.proc.files.status import parse_status
from opskit.proc.files.syscall import parse_syscall
from opskit.proc.fs import optional
from opskit.proc.memory import read_memory
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from opskit.proc.fs import ProcFS
    from opskit.proc.pipe_fill import Fill
    from opskit.proc.pipe_scan import Holder

# System call -> what a thread waits for in it, and which argument is the fd, the child, or the number of files to poll.
_CALLS: dict[str, tuple[str, int]] = {
    **dict.fromkeys(("read", "readv"), ("read", 0)),
    **dict.fromkeys(("write", "writev", "vmsplice", "sendfile"), ("write", 0)),
    **dict.fromkeys(
        ("futex", "nanosleep", "clock_nanosleep", "rt_sigsuspend", "rt_sigtimedwait", "pause"), ("sleep", 0)
    ),
    **dict.fromkeys(("select", "pselect6"), ("poll", 0)),
    **dict.fromkeys(("poll", "ppoll"), ("poll", 1)),
    "splice": ("splice", 2),
    "wait4": ("wait", 0),
}
_ANY_CHILD = 0xFFFFFFFF
_FOR_EVER = {"poll": 0xFFFFFFFF, "ppoll": 0}  # the third argument without a timeout: -1 ms, or no struct timespec
_POLLFD = struct.Struct("=iHH")
_FOR_INPUT = 0x0001 | 0x0002 | 0x0008 | 0x0010 | 0x2000  # POLLIN, POLLPRI, POLLERR, POLLHUP, POLLRDHUP
_MOST_POLLED = 8
_MAY_BE = {"read": ("read",), "write": ("write", "splice")}


class Wait(NamedTuple):
    """What a thread does. `call`: read, write, wait (for a child), sleep (for a timer, lock or signal), other or running.

    `on`: the pipe or file that it reads or writes, or the kernel function that it sleeps in. `times_slept` until now.
    `needs`: processes of which one must act before the wait ends; empty: unknown. `also`: other pipes of which one may end it,
    for a thread that polls nothing but pipes.
    """

    pid: int
    tid: int
    call: str
    on: bytes = b""
    times_slept: int | None = None
    needs: frozenset[int] = frozenset()
    also: tuple[bytes, ...] = ()


def parse_call(text: str, machine: str) -> tuple[str, int] | None:
    """(read, write, splice, wait or sleep; its fd or child) of a thread that sleeps in such a call; None for any other."""
    found = parse_syscall(text, machine)
    if found is None or found.name not in _CALLS:
        return None
    call, place = _CALLS[found.name]
    number = found.arguments[place]
    if call == "poll":  # of no files it is a sleep: Python before 3.11 sleeps in select()
        return ("sleep", 0) if number == 0 else None
    return call, number


def parse_poll(text: str, machine: str) -> tuple[int, int] | None:
    """(address, length) of the struct pollfd of a thread that polls a few files without a timeout; None for any other call."""
    found = parse_syscall(text, machine)
    if found is None or found.name not in _FOR_EVER:
        return None
    address, count, timeout = found.arguments[:3]
    is_for_ever = timeout & 0xFFFFFFFF == _FOR_EVER[found.name]
    return (address, count) if is_for_ever and 0 < count <= _MOST_POLLED else None


def _polled_pipes(fs: ProcFS, pid: int, tid: int, polled: tuple[int, int], fifos: Mapping[bytes, bytes]) -> list[bytes]:
    """The pipes that a thread polls for input; empty where it polls anything else, too."""
    address, count = polled
    data = read_memory(fs, pid, address, count * _POLLFD.size)
    if len(data) != count * _POLLFD.size:
        return []
    found = []
    for fd, events, _ in _POLLFD.iter_unpack(data):
        link = optional(fs.link, pid, "task", tid, "fd", fd, default=b"")
        if not (link.startswith(PIPE_PREFIX) or link in fifos) or events & ~_FOR_INPUT:
            return []
        found.append(fifos.get(link, link))
    return list(dict.fromkeys(found))


def wait_of(fs: ProcFS, pid: int, tid: int, fifos: Mapping[bytes, bytes]) -> Wait:
    """What a thread does now. `fifos`: key by path."""
    text = fs.maybe(str, pid, "task", tid, "syscall", default="")
    if text.startswith("running"):
        return Wait(pid, tid, "running")
    function = optional(fs.read, pid, "task", tid, "wchan", default=b"0").strip()
    slept = fs.maybe(_times_slept, pid, "task", tid, "status")
    call, number = parse_call(text, fs.machine) or ("other", 0)
    if call == "splice":  # it may wait for its input as well: fs/splice.c, pipe_wait_readable() and others
        call = "write" if function.startswith(b"pipe_") and not function.endswith(b"readable") else "other"
    if (
        call == "other"
        and (polled := parse_poll(text, fs.machine))
        and (pipes := _polled_pipes(fs, pid, tid, polled, fifos))
    ):
        return Wait(pid, tid, "read", pipes[0], slept, also=tuple(pipes[1:]))
    if call in ("read", "write"):
        on = optional(fs.link, pid, "task", tid, "fd", number, default=b"")
        return Wait(pid, tid, call, fifos.get(on, on), slept)
    needs = _children(fs, pid, number & _ANY_CHILD) if call == "wait" else frozenset()
    return Wait(pid, tid, call, b"" if function == b"0" else function, slept, needs)


def _times_slept(status: str) -> int | None:
    """The voluntary context switches in PROC/PID/task/TID/status, which is read for many threads."""
    _, found, rest = status.rpartition("\nvoluntary_ctxt_switches:")
    words = rest.split(None, 1) if found else []
    return integer(words[0]) if words else None


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
    found: list[Wait] = []
    for holder in holders:
        ends = holder.ends or {}
        if any(end.write_fds and fills[key].queued_bytes for key, end in ends.items() if key in fills):
            found += _asleep_in(fs, holder, "write", fifos)
    return found


def blocked_readers(fs: ProcFS, holders: Iterable[Holder], fifos: Mapping[bytes, bytes]) -> list[Wait]:
    """The threads that sleep in a read of a pipe, which is empty then and has a write end. Needs ptrace rights."""
    reading = (holder for holder in holders if any(end.read_fds for end in (holder.ends or {}).values()))
    return [wait for holder in reading for wait in _asleep_in(fs, holder, "read", fifos)]


def _asleep_in(fs: ProcFS, holder: Holder, wanted: str, fifos: Mapping[bytes, bytes]) -> Iterator[Wait]:
    """The holder's threads that sleep in a `read` of, or a `write` to, one of its pipes."""
    for tid in [holder.tid] if holder.tid else optional(fs.tids, holder.pid, default=[]):
        text = fs.maybe(str, holder.pid, "task", tid, "syscall", default="")
        call, _ = parse_call(text, fs.machine) or ("", 0)
        if call in _MAY_BE[wanted] or (wanted == "read" and parse_poll(text, fs.machine)):
            wait = wait_of(fs, holder.pid, tid, fifos)
            if wait.call == wanted and wait.on in (holder.ends or {}):
                yield wait


def sleeping_on_pipes(fs: ProcFS, pids: Iterable[int]) -> list[Wait]:
    """The threads of these processes that sleep in a read of a pipe or in a write to one, whoever is at its other end."""
    waits = (wait_of(fs, pid, tid, {}) for pid in pids for tid in optional(fs.tids, pid, default=[]))
    return [wait for wait in waits if wait.call in ("read", "write") and wait.on.startswith(PIPE_PREFIX)]


class Sides(NamedTuple):
    """The PIDs that hold read ends and write ends, by pipe."""

    readers: Mapping[bytes, set[int]]
    writers: Mapping[bytes, set[int]]


def sides_of(holders: Iterable[Holder]) -> Sides:
    """Who is at the two sides of each pipe."""
    readers: dict[bytes, set[int]] = {}
    writers: dict[bytes, set[int]] = {}
    for holder in holders:
        for key, end in (holder.ends or {}).items():
            if end.read_fds:
                readers.setdefault(key, set()).add(holder.pid)
            if end.write_fds:
                writers.setdefault(key, set()).add(holder.pid)
    return Sides(readers, writers)


def waits_around(
    fs: ProcFS, sides: Sides, blocked: Iterable[Wait], fifos: Mapping[bytes, bytes]
) -> dict[int, list[Wait]]:
    """What each thread does of the processes at both ends of these pipes, and of those that they wait for."""
    readers, writers = sides
    found: dict[int, list[Wait]] = {}
    todo: set[int] = set()
    for wait in blocked:
        others_of = readers if wait.call == "write" else writers
        todo |= {wait.pid}.union(*(others_of.get(key, ()) for key in (wait.on, *wait.also)))
    while todo:
        pid = todo.pop()
        found[pid] = waits = []
        for tid in optional(fs.tids, pid, default=[]):
            wait = wait_of(fs, pid, tid, fifos)
            if wait.call in ("read", "write"):
                others_of = writers if wait.call == "read" else readers
                others: set[int] = set().union(*(others_of.get(key, ()) for key in (wait.on, *wait.also)))
                # Of a pipe that it can write to itself, its own signal handler may do so.
                own = wait.call == "read" and pid in others
                wait = wait._replace(needs=frozenset() if own else frozenset(others))
            waits.append(wait)
        if all(wait.needs for wait in waits):
            todo |= {each for wait in waits for each in wait.needs}.difference(found)
    return found
