"""When the objects behind fds were made, where the kernel tells.

The times of a link in /proc/PID/fd are those of the first look at it. memfds and files have a birth time (statx(2)). A pipe's three
times are its creation where they are equal: since Linux 6.15 always, before it only until the pipe is used, which is not told. Sockets
have zeros; eventfds, epolls and their like share one inode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.fd import PIPE_PREFIX
from opskit.proc.fs import optional
from opskit.proc.kernel.syscalls import file_times
from opskit.proc.release import kernel_release

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.collect.fds.groups import Fd, Parts
    from opskit.host import Host
    from opskit.proc.kernel.syscalls import FileTimes

_NAMED = frozenset(("memfd", "file", "deleted"))
_PIPES_KEEP_THEIRS = (6, 15)
# Numbers of pipes are handed out in order, in blocks of 1,024 to each CPU (fs/inode.c, get_next_ino).
_BLOCK, _MOST_BLOCKS = 1024, 256
_MOST_NAMED, _MOST_IN_ALL = 2_000, 10_000

Span = tuple["float | None", "float | None"]
_UNKNOWN: Span = (None, None)


class Ages:
    """Reads the times of one look's groups; looks at a bounded number of objects."""

    def __init__(self, host: Host, started_s: float | None, may_look: Callable[[Parts, Fd], bool]) -> None:
        """`started_s`: when the process started, since 1970. `may_look`: whether a look at an fd's file does not hang."""
        self._fs, self._started_s, self._may_look = host.fs, started_s, may_look
        self._is_own = host.is_own
        self._left = _MOST_IN_ALL
        release = kernel_release(host.fs)
        self._pipes = release is not None and release >= _PIPES_KEEP_THEIRS

    def span(self, parts: Parts, kind: str, fds: Sequence[Fd]) -> Span:
        """The oldest and the newest object of a group, in seconds since 1970; None: unknown."""
        if not self._is_own:
            return _UNKNOWN
        if kind == "pipe" and self._pipes:
            first, last = _first_and_last(fds)
            oldest, newest = self._made(parts, first), self._made(parts, last)
            return (min(oldest) if oldest else None), (max(newest) if newest else None)
        if kind in _NAMED and len(fds) <= _MOST_NAMED:
            is_safe = kind == "memfd" or all(self._may_look(parts, fd) for fd in fds)
            return self._born(parts, kind, fds) if is_safe else _UNKNOWN
        return _UNKNOWN

    def _made(self, parts: Parts, fds: Sequence[Fd]) -> list[float]:
        """The creation times of pipes, without those that were closed meanwhile; empty where one does not tell."""
        made = []
        for fd in fds:
            found = self._times(parts, fd)
            if found is None or found.inode != _number_of(fd[1]):
                continue
            if not found.accessed_s == found.modified_s == found.changed_s > 0:
                return []
            made.append(found.changed_s)
        return made

    def _born(self, parts: Parts, kind: str, fds: Sequence[Fd]) -> Span:
        """The birth times of files. One that is older than the process says nothing about when it was opened."""
        found = [times for fd in fds if (times := self._times(parts, fd)) is not None]
        born = [times.born_s for times in found if times.born_s is not None]
        if not born or len(born) < len(found):
            return _UNKNOWN
        if kind != "file":
            return min(born), max(born)
        if self._started_s is None or max(born) < self._started_s:
            return _UNKNOWN
        return (min(born) if min(born) >= self._started_s else None), max(born)

    def _times(self, parts: Parts, fd: Fd) -> FileTimes | None:
        if self._left <= 0:
            return None
        self._left -= 1
        return optional(self._fs.calls.ask, file_times, self._fs.path(*parts, "fd", fd[0].decode("ascii", "replace")))


def _number_of(target: bytes) -> int:
    """The inode number in `pipe:[8121]`, as the kernel writes it."""
    return int(target[len(PIPE_PREFIX) : -1])


def _first_and_last(fds: Sequence[Fd]) -> tuple[list[Fd], list[Fd]]:
    """Fds among which the oldest and the newest object are: the lowest and the highest number of each block."""
    first: dict[int, tuple[int, Fd]] = {}
    last: dict[int, tuple[int, Fd]] = {}
    for fd in fds:
        number = _number_of(fd[1])
        block = number // _BLOCK
        if block not in first:
            first[block] = last[block] = number, fd
        elif number > last[block][0]:
            last[block] = number, fd
        elif number < first[block][0]:
            first[block] = number, fd
    return (
        [first[block][1] for block in sorted(first)[:_MOST_BLOCKS]],
        [last[block][1] for block in sorted(last)[-_MOST_BLOCKS:]],
    )
