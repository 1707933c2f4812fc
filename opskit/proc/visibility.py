"""How many of the machine's processes were read, and which ones missing rights hide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.loadavg import parse_loadavg
from opskit.proc.files.mountinfo import parse_mountinfo
from opskit.proc.fs import DENIED, Refused
from opskit.proc.rights import RUN_AS_ROOT, how_to_be_allowed, missing, our_rights
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.proc.fs import ProcFS

PERMISSION_DENIED = "permission denied"
_NAMED = 5


def why_unread(error: Exception) -> str:
    """A short reason for a DENIED, a Refused or a BadInput."""
    if isinstance(error, Refused):
        return str(error.strerror)
    return PERMISSION_DENIED if isinstance(error, DENIED) else str(error)


def coverage_lines(
    fs: ProcFS, scanned: int, denied: Sequence[int], vanished: int, *, may_be_meant: bool = True
) -> Iterator[str]:
    """A sentence for each group of processes that is missing.

    `may_be_meant`: whether the answer may be among the `denied` PIDs. Few of them are named.
    """
    if denied and (may_be_meant or not fs.is_live):
        advice = _to_see_them(fs) if fs.is_live else "this copy does not hold their files"
        named = f" ({', '.join(map(str, denied))})" if fs.is_live and len(denied) <= _NAMED else ""
        count = scanned + len(denied)
        yield f"{len(denied):,} of {plural(count, 'process', 'processes')} could not be read{named}; {advice}"
    if vanished:
        yield f"{plural(vanished, 'process', 'processes')} vanished during the scan"
    load = fs.maybe(parse_loadavg, "loadavg") if hides_processes(fs) else None
    if load is not None:
        yield f"{fs.proc} hides other users' processes (hidepid): {load.tasks:,} tasks run in all; {_to_see_them(fs)}"


def _to_see_them(fs: ProcFS) -> str:
    advice = how_to_be_allowed(fs, "CAP_SYS_PTRACE")
    return f"{RUN_AS_ROOT} to see them" if advice == RUN_AS_ROOT else advice


def more_rights_show_more(fs: ProcFS) -> bool:
    """Whether processes are unreadable because opskit lacks rights. Otherwise they are guarded from everybody."""
    rights = our_rights(fs)
    return rights is None or not rights.in_initial_user_namespace or bool(missing(rights.effective, "CAP_SYS_PTRACE"))


def hides_processes(fs: ProcFS) -> bool:
    """Whether the proc tree leaves out processes of other users (hidepid, proc(5))."""
    options = _hidepid(fs)
    if options is None:
        return False
    hidepid, group = options
    rights = our_rights(fs)
    if rights is None or not rights.in_initial_user_namespace:
        return True
    let_in_by_group = hidepid not in ("4", "ptraceable") and group in rights.groups
    return not let_in_by_group and bool(missing(rights.effective, "CAP_SYS_PTRACE"))


def is_mounted_with_hidepid(fs: ProcFS) -> bool:
    """Whether it leaves out processes for some users."""
    return _hidepid(fs) is not None


def _hidepid(fs: ProcFS) -> tuple[str, str] | None:
    """(hidepid, gid) of the tree's mount; None where nothing is hidden. Members of the group see everything."""
    mounts = fs.maybe(parse_mountinfo, "self", "mountinfo", default=[])
    here = [mount for mount in mounts if mount.fs_type == "proc" and mount.mount_point == fs.proc]
    options = {option.partition("=")[0]: option.partition("=")[2] for mount in here[-1:] for option in mount.options}
    hidepid = options.get("hidepid", "0")
    return None if hidepid in ("0", "off") else (hidepid, options.get("gid", "0"))
