"""What of the machine's processes could be seen, and what the rights hid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.fs import DENIED, GONE, ProcFS
from opskit.proc.mountinfo import parse_mountinfo
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Iterator


def coverage_lines(fs: ProcFS, scanned: int, denied: int, vanished: int, *, as_root: bool) -> Iterator[str]:
    """The sentences that say what is missing; none where nothing is."""
    if denied:
        advice = (
            "this copy does not hold their files"
            if not fs.is_live
            else "not even by root: a security module or sandbox guards them"
            if as_root
            else "run as root to see them"
        )
        yield f"{denied} of {scanned + denied} processes could not be read; {advice}"
    if vanished:
        yield f"{vanished} process{'' if vanished == 1 else 'es'} vanished during the scan"
    if not as_root and hides_processes(fs):  # nothing is hidden from root
        try:
            tasks = fs.load(parse_total_tasks, "loadavg")
        except (*GONE, DENIED, BadInput):
            return
        yield f"{fs.proc} hides other users' processes (hidepid): {tasks} tasks run in all; run as root to see them"


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
    total = integer(words[3].partition("/")[2]) if len(words) > 3 else None
    if total is None:
        raise BadInput("loadavg", "not `a b c running/total pid`", found=text)
    return total
