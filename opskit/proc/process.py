"""The identity of a process: name, owner, parent, start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import optional
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.proc.fs import ProcFS

_DELETED = " (deleted)"
_COMM_BYTES = 15


class Process(NamedTuple):
    """One process. `start_ticks` (clock ticks since boot) distinguish it from a later one with the same PID. None: unknown."""

    pid: int
    command: str  # the exe's name, or comm where the exe is unreadable
    uid: int | None = None
    user: str | None = None
    ppid: int | None = None
    start_ticks: int | None = None
    state: str | None = None
    threads: int | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it has ended or is a zombie. A zombie with threads runs: only its main thread has exited."""
        return self.start_ticks is None or (self.state in ("Z", "X") and (self.threads or 1) <= 1)


def command_name(fs: ProcFS, pid: int) -> str:
    """The basename of the process's exe, or comm; "?" where both are unreadable or empty."""
    exe = optional(fs.link, pid, "exe")
    if exe is None:  # gone, denied, or a path longer than a page
        return _comm(fs, pid)
    name = exe.rpartition(b"/")[2].decode("utf-8", "surrogateescape")
    if not name.endswith(_DELETED):
        return name
    # The kernel marks a deleted exe so, but a file may have such a name: then comm, which exec shortens, has it too.
    bare = name[: -len(_DELETED)]
    return name if len(bare) < _COMM_BYTES and _comm(fs, pid) == name[:_COMM_BYTES] else bare


def read_process(fs: ProcFS, pid: int, user_name: Callable[[int], str]) -> Process:
    """The identity of a process; None for each value that cannot be read."""
    uid = fs.maybe(real_uid, pid, "status")
    stat = None if uid is None else fs.maybe(parse_stat, pid, "stat")
    rest = (stat.ppid, stat.start_ticks, stat.state, stat.threads) if stat else ()
    return Process(pid, command_name(fs, pid), uid, None if uid is None else user_name(uid), *rest)


def real_uid(status: str) -> int:
    """The real uid of /proc/PID/status. Raises BadInput."""
    return parse_status(status).real_uid


def _comm(fs: ProcFS, pid: int) -> str:
    return (fs.maybe(str, pid, "comm") or "").removesuffix("\n") or "?"
