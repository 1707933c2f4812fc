"""How many file descriptors a process has left: RLIMIT_NOFILE bounds their numbers, from 0 to the soft limit (getrlimit(2)).

A thread that waits in accept(2) has taken its descriptor already: since Linux 6.2 the size of /proc/PID/fd counts it, the
directory does not list it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.limits import UNLIMITED, Rlimit, parse_limits
from opskit.proc.files.sysctl import read_sysctl
from opskit.proc.fs import optional
from opskit.proc.rights import missing, our_rights
from opskit.quantities import integer
from opskit.records import NamedTuple
from opskit.shell import command

if TYPE_CHECKING:
    from opskit.proc.files.status import Status
    from opskit.proc.fs import ProcFS

_FEWEST_MORE = 64
_NAME = "RLIMIT_NOFILE"
_NR_OPEN = 1 << 20  # fs.nr_open by default, the most that a limit may be


class OpenFiles(NamedTuple):
    """The descriptors below the soft limit that are taken, and the limit."""

    taken: int
    limit: Rlimit

    @property
    def free(self) -> float:
        """How many more the process can open."""
        return max(0.0, self.limit.soft - self.taken)


def open_files(fs: ProcFS, pid: int) -> OpenFiles | None:
    """The open files of a process; None where they or the limit cannot be read."""
    limit = fs.maybe(_limit, pid, "limits")
    directory = fs.path(pid, "fd")
    counted = optional(fs.file_id_at, directory) if fs.is_live else None
    taken = counted.size_bytes if counted is not None else 0
    if limit is None or 0 < taken < limit.soft:
        return limit and OpenFiles(taken, limit)
    names = optional(fs.names_at, directory)
    if names is None:
        return OpenFiles(round(limit.soft), limit) if taken else None
    # A limit that was lowered leaves open what is above it.
    above = sum((integer(name) or 0) >= limit.soft for name in names)
    return OpenFiles(round(min((taken or len(names)) - above, limit.soft)), limit)


def _limit(text: str) -> Rlimit:
    return parse_limits(text, _NAME)[_NAME]


def raise_limit(fs: ProcFS, pid: int, status: Status, limit: Rlimit) -> tuple[str | None, str]:
    """The command for twice the limit, neither value below the present one, and a note on missing rights; None: fs.nr_open is reached.

    `prlimit --pid 4242 --nofile=200:4096`. Only CAP_SYS_RESOURCE may raise a hard limit, or change another user's.
    """
    rights = our_rights(fs)
    is_root = rights is not None and rights.euid == 0
    is_free = rights is not None and not missing(rights.effective, "CAP_SYS_RESOURCE")
    most = read_sysctl(fs, "fs", "nr_open") or _NR_OPEN
    soft = min(max(2 * limit.soft, limit.soft + _FEWEST_MORE), most)
    if limit.soft < limit.hard < soft and not is_free:
        soft = limit.hard
    if soft <= limit.soft:
        return None, ""
    lacking = (
        " (only with CAP_SYS_RESOURCE, which root lacks here)" if soft > limit.hard and is_root and not is_free else ""
    )
    prefix: tuple[object, ...] = ()
    if soft > limit.hard and not is_root:
        prefix = ("sudo",)
    elif is_root and not is_free and status.real_uid != 0:
        prefix = ("setpriv", f"--reuid={status.real_uid}", f"--regid={status.real_gid}", "--clear-groups")
    values = ("unlimited" if each == UNLIMITED else f"{each:.0f}" for each in (soft, max(soft, limit.hard)))
    return command(*prefix, "prlimit", "--pid", pid, f"--nofile={':'.join(values)}"), lacking
