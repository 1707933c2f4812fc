"""Which threads of a process wait on which of its fds, and where in Java."""

from __future__ import annotations

from opskit.records import NamedTuple


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
