"""Where a process comes from, and what it has done so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.io import parse_io
from opskit.proc.files.stat import ProcStat, parse_stat
from opskit.proc.files.status import parse_status
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

_MOST_ANCESTORS = 64


class Past(NamedTuple):
    """A process's past. `is_adopted`: its own parent has ended, and init or a subreaper of another session adopted it.

    `written_bytes`: of all its write() calls since it was forked. `caught`: the mask of signals with a handler. None: unknown.
    """

    is_adopted: bool = False
    ancestors: frozenset[int] = frozenset()
    written_bytes: int | None = None
    caught: int | None = None


def read_past(fs: ProcFS, pid: int) -> Past:
    """What can be read; written bytes need ptrace rights."""
    stat = fs.maybe(parse_stat, pid, "stat")
    if stat is None:
        return Past()
    counters, status = fs.maybe(parse_io, pid, "io"), fs.maybe(parse_status, pid, "status")
    return Past(
        _is_left(fs, stat),
        _ancestors(fs, stat.ppid),
        counters and counters.written_bytes,
        status and status.mask("SigCgt"),
    )


def is_adopted(fs: ProcFS, pid: int) -> bool:
    """Whether the process that started it has ended; False where that is unknown."""
    stat = fs.maybe(parse_stat, pid, "stat")
    return stat is not None and _is_left(fs, stat)


def _is_left(fs: ProcFS, stat: ProcStat) -> bool:
    parent = fs.maybe(parse_stat, stat.ppid, "stat")
    # A parent and its child share a session, unless one of them has made its own.
    return parent is not None and stat.session not in (None, stat.pid, parent.session)


def _ancestors(fs: ProcFS, parent: int) -> frozenset[int]:
    found: set[int] = set()
    while parent and parent not in found and len(found) < _MOST_ANCESTORS:
        found.add(parent)
        stat = fs.maybe(parse_stat, parent, "stat")
        parent = stat.ppid if stat else 0
    return frozenset(found)
