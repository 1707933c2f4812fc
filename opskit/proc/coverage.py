"""What of the machine's processes could be seen, and what the rights hid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.fs import DENIED, GONE, ProcFS
from opskit.proc.mountinfo import parse_mountinfo
from opskit.proc.rights import RUN_AS_ROOT, how_to_be_allowed, sees_every_process

if TYPE_CHECKING:
    from collections.abc import Iterator


def coverage_lines(fs: ProcFS, scanned: int, denied: int, vanished: int) -> Iterator[str]:
    """The sentences that say what is missing; none where nothing is."""
    if denied:
        advice = _to_see_them(fs)
        yield f"{denied} of {scanned + denied} processes could not be read; {advice}"
    if vanished:
        yield f"{vanished} process{'' if vanished == 1 else 'es'} vanished during the scan"
    if hides_processes(fs) and not sees_every_process():
        try:
            tasks = fs.load(parse_total_tasks, "loadavg")
        except (*GONE, DENIED, BadInput):
            return
        yield f"{fs.proc} hides other users' processes (hidepid): {tasks} tasks run in all; {_to_see_them(fs)}"


def _to_see_them(fs: ProcFS) -> str:
    advice = how_to_be_allowed(fs, "CAP_SYS_PTRACE")
    return f"{RUN_AS_ROOT} to see them" if advice == RUN_AS_ROOT else advice


def hides_processes(fs: ProcFS) -> bool:
    """Whether the proc tree is mounted with hidepid, which leaves other users' processes out of readdir."""
    try:
        mounts = fs.load(parse_mountinfo, "self", "mountinfo")
    except (*GONE, DENIED, BadInput):
        return False
    here = [mount for mount in mounts if mount.fs_type == "proc" and mount.mount_point == fs.proc]
    return any(
        option.startswith("hidepid=") and option[8:] not in ("0", "off")
        for mount in here[-1:]
        for option in mount.options
    )


def parse_total_tasks(text: str) -> int:
    """All tasks (threads) of the machine: the number behind the slash of `0.20 0.18 0.12 1/489 11206`."""
    words = text.split()
    if len(words) < 4 or "/" not in words[3]:
        raise BadInput("loadavg", "not `a b c running/total pid`", found=text)
    return int(words[3].partition("/")[2])
