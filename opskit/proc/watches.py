"""The inotify instances and epolls of processes, and how many watches each has: /proc/PID/fdinfo (Documentation/filesystems/proc.rst, 3.8).

anon_inode:inotify, of which a line is a watch (inotify(7)):

inotify wd:3 ino:9e7e sdev:800013 mask:800afce ignored_mask:0 fhandle-bytes:8 fhandle-type:1 f_handle:7e9e0000640d1b6d

anon_inode:[eventpoll] (epoll(7)):

tfd:        5 events:       1d data: ffffffffffffffff  pos:0 ino:61af sdev:7
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING

from opskit.proc.files.status import parse_status
from opskit.proc.fs import optional
from opskit.proc.kernel import syscalls
from opskit.proc.namespaces import namespace
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.proc.fs import ProcFS

INOTIFY, EPOLL = "inotify", "epoll"
_TARGETS = {b"anon_inode:inotify": INOTIFY, b"inotify": INOTIFY, b"anon_inode:[eventpoll]": EPOLL}
_LINES = {INOTIFY: b"inotify wd:", EPOLL: b"tfd:"}
_MOST_COMPARED = 20_000
_TRIES = 3

Place = tuple[int, int]  # a PID, or the TID of a thread with a table of its own, and an fd


class Watcher(NamedTuple):
    """An inotify instance or an epoll, once, of the first process that has it open. `watches` None: its fdinfo could not be read."""

    pid: int
    fd: int
    kind: str
    watches: int | None


def watcher_fds(pairs: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, int]]:
    """The fds that are one, (kind, fd), among those of an fd table: (name, target)."""
    return [(_TARGETS[target], integer(name) or 0) for name, target in pairs if target in _TARGETS]


def read_watchers(fs: ProcFS, kind: str, places: Sequence[Place]) -> tuple[list[Watcher], bool]:
    """Each open file among these fds, and whether they could be told apart: a fork has the same one, which counts once.

    Where kcmp(2) is closed to us, fds of the same number and content count as one: there may be more.
    """
    files = _distinct(fs, places) if fs.is_own() and len(places) <= _MOST_COMPARED else None
    if files is not None:
        return [Watcher(pid, fd, kind, _watches(_content(fs, (pid, fd)), kind)) for pid, fd in files], True
    found: dict[tuple[int, bytes | None], Watcher] = {}
    for pid, fd in places:
        content = _content(fs, (pid, fd))
        found.setdefault((fd, content), Watcher(pid, fd, kind, _watches(content, kind)))
    return [*found.values()], len(found) == len(places)


def _distinct(fs: ProcFS, places: Sequence[Place]) -> list[Place] | None:
    """The first fd of each open file; None where they cannot be compared."""
    left = [*places]

    def compare(one: Place, other: Place) -> int:
        return fs.calls.ask(syscalls.compare_files, one, other)

    for _ in range(_TRIES):
        try:
            in_order = sorted(left, key=cmp_to_key(compare))
            same = [bool(at) and not compare(in_order[at - 1], place) for at, place in enumerate(in_order)]
        except OSError:  # one has ended, or closed it
            left = [place for place in left if optional(compare, place, place) == 0]
            if not left:  # kcmp(2) is closed to us
                return None
            continue
        groups: list[list[Place]] = []
        for place, is_same in zip(in_order, same):
            if is_same:
                groups[-1].append(place)
            else:
                groups.append([place])
        return sorted(min(group) for group in groups)
    return None


def _content(fs: ProcFS, place: Place) -> bytes | None:
    return optional(fs.read, place[0], "fdinfo", place[1])


def _watches(content: bytes | None, kind: str) -> int | None:
    if content is None:
        return None
    line = _LINES[kind]
    return content.count(b"\n" + line) + content.startswith(line)


def payer(fs: ProcFS, pid: int, kind: str) -> int | None:
    """The uid whose limit a process's watchers count against: None: unknown.

    Epolls: its real uid. inotify: its effective uid, or where it is in a user namespace below ours, who made that. What it
    opened before it changed its uid counts for the uid before.
    """
    status = fs.maybe(parse_status, pid, "status")
    if status is None:
        return None
    if kind == EPOLL:
        return status.real_uid
    if fs.is_own() and namespace(fs, pid, "user") != namespace(fs, "self", "user"):
        owner: int | None = optional(fs.calls.ask, syscalls.charged_uid, fs.path(pid, "ns", "user"))
        if owner is not None:
            return owner
    return status.effective_uid
