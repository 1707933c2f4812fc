"""Who a process is: its name, owner, parent and start."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opskit.errors import BadInput
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import DENIED, GONE, ProcFS

if TYPE_CHECKING:
    from collections.abc import Callable

_DELETED = " (deleted)"
_COMM_BYTES = 15


class Process(NamedTuple):
    """One process. `start_ticks` (clock ticks since boot) tells it from a later process of the same pid.

    `command` is the exe's name, or comm where there is no exe to read. None: the kernel, or the rights, do not say.
    """

    pid: int
    command: str
    uid: int | None = None
    user: str | None = None
    ppid: int | None = None
    start_ticks: int | None = None
    state: str | None = None
    threads: int | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing runs any more: gone, or a zombie that its parent has not waited for yet.

        A process whose main thread alone has exited is a zombie with threads, and lives.
        """
        return self.start_ticks is None or (self.state in ("Z", "X") and (self.threads or 1) <= 1)


def command_name(fs: ProcFS, pid: int) -> str:
    """The basename of the process's exe, or comm. "?" where the process is gone before it gave either, or has an empty comm."""
    try:
        name = fs.link(pid, "exe").rpartition(b"/")[2].decode("utf-8", "surrogateescape")
    except OSError:  # gone, denied, or a path longer than the kernel tells
        return _comm(fs, pid)
    if not name.endswith(_DELETED):
        return name
    # The kernel marks an exe that was deleted, but a file may really be called so: then comm, cut by exec, says it too.
    bare = name[: -len(_DELETED)]
    return name if len(bare) < _COMM_BYTES and _comm(fs, pid) == name[:_COMM_BYTES] else bare


def read_process(fs: ProcFS, pid: int, user_name: Callable[[int], str]) -> Process:
    """Everything about a process; what vanishes or is denied meanwhile, or was copied half, is None."""
    uid = ppid = start = state = threads = None
    try:
        uid = fs.load(parse_status, pid, "status").real_uid
        stat = fs.load(parse_stat, pid, "stat")
        ppid, start, state, threads = stat.ppid, stat.start_ticks, stat.state, stat.threads
    except (*GONE, DENIED, BadInput):
        pass
    user = None if uid is None else user_name(uid)
    return Process(pid, command_name(fs, pid), uid, user, ppid, start, state, threads)


def _comm(fs: ProcFS, pid: int) -> str:
    try:
        return fs.load(_strip_newline, pid, "comm") or "?"
    except OSError:
        return "?"


def _strip_newline(text: str) -> str:
    return text.removesuffix("\n")
