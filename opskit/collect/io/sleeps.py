"""Sleeps that last until a device or a server answers: state D, and waits for a FUSE server, whose state is S until a signal comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.mountinfo import parse_mountinfo
from opskit.proc.files.status import parse_status

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

_FUSE_WAIT = "request_wait_answer"
_SWITCHES = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")
_CONNECTIONS = ("sys", "fs", "fuse", "connections")
_MOST_CONNECTIONS = 1024

Switches = tuple[str, ...]


def switches(fs: ProcFS, pid: int, tid: int) -> Switches | None:
    """How often a thread was switched away from a CPU: as long as this is the same, it is in one sleep. None: it has ended, or unknown."""
    status = fs.maybe(parse_status, pid, "task", tid, "status")
    if status is None:
        return None
    found = tuple(status.fields.get(key, "") for key in _SWITCHES)
    return found if all(found) else None


def is_fuse_wait(where: str | None) -> bool:
    """Whether this function of the kernel (wchan) waits for the answer of a FUSE server."""
    return where is not None and where.startswith(_FUSE_WAIT)


def waits_for_fuse(fs: ProcFS, pid: int, tid: int) -> bool:
    """Whether a thread waits for such an answer."""
    return is_fuse_wait(fs.maybe(str, pid, "task", tid, "wchan"))


def sees_fuse(fs: ProcFS, pid: int | str) -> bool:
    """Whether a process sees a FUSE file system. fusectl, which each systemd mounts, is none."""
    mounts = fs.maybe(parse_mountinfo, pid, "mountinfo", default=[])
    return any(mount.fs_type.startswith("fuse") and mount.fs_type != "fusectl" for mount in mounts)


def may_wait_for_fuse(fs: ProcFS) -> bool:
    """Whether any FUSE server of the machine owes an answer; without fusectl, which tells that, whether there is one."""
    names = fs.names_root(*_CONNECTIONS)[:_MOST_CONNECTIONS]
    if names:
        return any(fs.maybe_root(str.strip, *_CONNECTIONS, name, "waiting") != "0" for name in names)
    return sees_fuse(fs, 1) or sees_fuse(fs, "self")
