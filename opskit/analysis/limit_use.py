"""How much of each rlimit is used, threads or not: those nearly used up are marked. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opskit.proc.files.limits import UNLIMITED
from opskit.quantities import integer

if TYPE_CHECKING:
    from opskit.proc.thread_limits import Situation

_NEARLY = 0.8


@dataclass(frozen=True)
class LimitUse:
    """One rlimit: `value` (soft) and `in_use` in `unit` ("bytes", "files", "signals", "threads", "seconds").

    `share` is the used part, 0 to 1; None where either is not known or there is no limit. `nearly` marks those over 80 %.
    """

    name: str
    what: str
    unit: str
    value: float | None
    in_use: float | None
    share: float | None
    source: str

    @property
    def nearly(self) -> bool:
        """Whether more than 80 % are used."""
        return self.share is not None and self.share > _NEARLY


def limit_uses(situation: Situation, cpu_seconds: float | None, largest_written_bytes: int | None) -> list[LimitUse]:
    """Every rlimit that has a use to be compared with, the fullest first."""
    status = situation.status
    pending, _, _ = status.fields.get("SigQ", "").partition("/")
    rows = (
        ("RLIMIT_NOFILE", "open files", "files", situation.open_files, "fd"),
        ("RLIMIT_MEMLOCK", "locked memory", "bytes", status.bytes_of("VmLck"), "status, VmLck"),
        (
            "RLIMIT_SIGPENDING",
            "pending signals",
            "signals",
            integer(pending),
            "status, SigQ",
        ),
        ("RLIMIT_NPROC", "processes", "threads", situation.user_threads, "all threads of its real uid"),
        ("RLIMIT_AS", "address space", "bytes", status.bytes_of("VmSize"), "status, VmSize"),
        ("RLIMIT_DATA", "data", "bytes", status.bytes_of("VmData"), "status, VmData"),
        ("RLIMIT_STACK", "main thread's stack", "bytes", status.bytes_of("VmStk"), "status, VmStk"),
        ("RLIMIT_FSIZE", "file size", "bytes", largest_written_bytes, "fdinfo, farthest write position"),
        ("RLIMIT_CPU", "cpu time", "seconds", cpu_seconds, "stat"),
        ("RLIMIT_CORE", "core", "bytes", None, "limits"),
    )
    found = []
    for name, what, unit, used, source in rows:
        limit = situation.limits.get(name)
        value = limit.soft if limit else None
        share = None
        if value not in (None, UNLIMITED) and used is not None and value is not None:
            share = used / value if value else (1.0 if used else 0.0)
        found.append(LimitUse(name, what, unit, value, used, share, source))
    return sorted(found, key=lambda use: -(use.share or 0.0))
