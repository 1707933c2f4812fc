"""Who made a System V segment: its creator may have ended, and its PID may be another process's by now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.boot_time import parse_boot_time, started_s
from opskit.proc.files.stat import parse_stat
from opskit.proc.process import command_name

if TYPE_CHECKING:
    from opskit.host import Host
    from opskit.proc.files.sysvipc_shm import Segment

_SAME_MOMENT_S = 2  # both times are whole seconds


def creator_of(host: Host, segment: Segment) -> str | None:
    """The command of the process that made it; None: it has ended."""
    fs, pid = host.fs, segment.creator_pid
    if not pid or not fs.exists(pid):
        return None
    stat = fs.maybe(parse_stat, pid, "stat")
    began_s = started_s(fs.maybe(parse_boot_time, "stat"), stat.start_ticks, host.clock_ticks) if stat else None
    if began_s is not None and segment.changed_s is not None and began_s > segment.changed_s + _SAME_MOMENT_S:
        return None
    return command_name(fs, pid)
