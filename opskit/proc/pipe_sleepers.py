"""Threads that sleep in a pipe or in open() of a FIFO, by `wchan` alone: the cheapest look at every process.

The kernel's functions are those of fs/pipe.c; a compiler may inline the inner ones. `0` stands for a thread that runs, and for all
threads where ptrace rights are missing or the kernel keeps no stacks.

/proc/4242/wchan -> anon_pipe_write
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fs import optional
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.fs import ProcFS

WRITING = frozenset({b"anon_pipe_write", b"pipe_write", b"fifo_pipe_write", b"pipe_wait_writable", b"wait_for_space"})
READING = frozenset({b"anon_pipe_read", b"pipe_read", b"fifo_pipe_read", b"pipe_wait_readable"})
_BOTH = frozenset({b"pipe_wait"})  # before Linux 5.5
OPENING = frozenset({b"wait_for_partner", b"fifo_open"})
# A thread in one of these waits for a timer, a lock or a signal; in do_wait for a child: for nothing from outside of the machine.
_TIMED = (b"hrtimer_nanosleep", b"futex_", b"sigsuspend", b"__do_sys_pause", b"do_sys_pause", b"do_sigtimedwait")
_CHILD = b"do_wait"
_MOST_THREADS = 4000


class Sleepers(NamedTuple):
    """Threads as (PID, TID). `asleep`: processes each of whose threads waits for nothing from outside; `timed`: and for no child and no pipe.

    `unread`: threads that were left out, since there are too many; `known`: whether this kernel names any function.
    """

    writing: tuple[tuple[int, int], ...]
    reading: tuple[tuple[int, int], ...]
    opening: tuple[tuple[int, int], ...]
    asleep: frozenset[int]
    timed: frozenset[int]
    threads: int
    unread: int
    known: bool


def pipe_sleepers(fs: ProcFS, pids: Iterable[int]) -> Sleepers:
    """One look at the threads of these processes: at the first one of each, then at the others while they are at most 4,000."""
    writing: list[tuple[int, int]] = []
    reading: list[tuple[int, int]] = []
    opening: list[tuple[int, int]] = []
    awake: set[int] = set()
    bound: set[int] = set()  # that wait for a child or a pipe
    others: list[tuple[int, int]] = []
    seen: list[int] = []
    known = False
    read, path = fs.read, "wchan"
    for pid in pids:
        function = optional(read, pid, path)
        if function is None:
            continue
        seen.append(pid)
        threads = optional(fs.thread_count, pid, default=1)
        if threads > 1:
            others.append((threads, pid))
        known = known or len(function) > 1
        if not function.startswith(_TIMED):
            bound.add(pid)
            if not _sort(function, (pid, pid), writing, reading, opening):
                awake.add(pid)
    left, unread = _MOST_THREADS, 0
    count = len(seen)
    for threads, pid in sorted(others):
        if threads > left:
            awake.add(pid)
            unread += threads - 1
            continue
        for tid in optional(fs.tids, pid, default=[]):
            if tid != pid:
                left -= 1
                count += 1
                function = optional(read, pid, "task", tid, path, default=b"0")
                if not function.startswith(_TIMED):
                    bound.add(pid)
                    if not _sort(function, (pid, tid), writing, reading, opening):
                        awake.add(pid)
    asleep = frozenset(pid for pid in seen if pid not in awake)
    return Sleepers(
        tuple(writing),
        tuple(reading),
        tuple(opening),
        asleep,
        asleep - bound,
        count,
        unread,
        known or not seen,
    )


def _sort(
    function: bytes, thread: tuple[int, int], writing: list[tuple[int, int]], reading: list[tuple[int, int]],
    opening: list[tuple[int, int]],
) -> bool:  # fmt: skip
    """Add a thread to its list. Whether it waits for nothing from outside."""
    if function == _CHILD:
        return True
    is_write, is_read = function in WRITING or function in _BOTH, function in READING or function in _BOTH
    if is_write:
        writing.append(thread)
    if is_read:
        reading.append(thread)
    if function in OPENING:
        opening.append(thread)
    return is_write or is_read
