"""Which threads of a process wait on which of its fds, and where in Java."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.java_threads import java_threads
from opskit.proc.fd_waits import FdWait, inner_id, waits_on
from opskit.proc.thread_names import thread_name
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opskit.host import Host
    from opskit.jvm.dumps.thread_dump import Thread

_LOOKS, _GAP_S = 4, 0.015
_NATIVE = "Native Method"  # where HotSpot's frame of a system call is


class FdThread(NamedTuple):
    """A thread that sleeps in a system call on an fd. `name`: of its Java thread where a dump was taken, else its comm.

    `frames`: its Java stack, innermost first, as the dump writes each frame; empty without a dump. `among`: how many fds the call
    waits for; of several (poll, epoll_wait) this one is not what holds the thread up.
    """

    fd: int
    tid: int
    name: str
    call: str  # read, recvfrom, poll, epoll_wait, accept4, write, connect, …
    frames: tuple[str, ...] = ()
    among: int = 1


def waiting_threads(
    host: Host, pid: int, fds: Collection[int], ask: bool, problems: list[str] | None = None
) -> tuple[FdThread, ...]:
    """The threads that sleep on these fds, those that wait for one alone first. Nothing is found without ptrace rights.

    `ask`: take one thread dump, if the process is a JVM, and give the Java stacks of those that are in the same call before and after
    it. `problems` gets the reason why there is no dump.
    """
    fs, wanted = host.fs, frozenset(fds)
    found = _seen(host, pid, wanted)
    java: Mapping[int, Thread] = {}
    still: set[tuple[int, str]] = set()
    if ask and found:
        java = java_threads(host, pid, problems)
        still = {(wait.tid, wait.line) for wait in _seen(host, pid, wanted)} if java else still
    threads: dict[tuple[int, int], FdThread] = {}
    for wait in found:
        thread = java.get(inner_id(fs, pid, wait.tid)) if java else None
        name = thread.name if thread is not None and thread.name else thread_name(fs, pid, wait.tid)
        if name is None:  # it has ended
            continue
        frames = thread.stack.frames if thread is not None and (wait.tid, wait.line) in still else ()
        if frames and _NATIVE not in frames[0]:  # it was elsewhere in between
            frames = ()
        for fd in wait.fds & wanted:
            threads[fd, wait.tid] = FdThread(fd, wait.tid, name, wait.call, frames, len(wait.fds))
    return tuple(sorted(threads.values(), key=lambda each: (each.fd, each.among, each.tid)))


def _seen(host: Host, pid: int, fds: frozenset[int]) -> list[FdWait]:
    """The threads that sleep on these fds now, or a moment later where nobody does: one that answers is not there all the time."""
    found: dict[tuple[int, str], FdWait] = {}
    for number in range(_LOOKS):
        if number:
            if not host.can_look_after(_GAP_S):
                break
            host.sleep(_GAP_S)
        found.update({(wait.tid, wait.line): wait for wait in waits_on(host.fs, pid, fds)})
        if fds <= frozenset().union(*(wait.fds for wait in found.values())):
            break
    return list(found.values())
