"""How much of each rlimit is used, whether or not it concerns threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.limits import UNLIMITED
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.collect.limits.facts import ThreadLimitFacts

_NEARLY = 0.8


class LimitUse(NamedTuple):
    """One rlimit: `value` (soft) and `in_use` in `unit` ("bytes", "files", "signals", "threads", "seconds").

    `share` is the used part, 0 to 1; None where either is unknown or there is no limit.
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


def _pending_signals(facts: ThreadLimitFacts) -> int | None:
    return integer(facts.status.fields.get("SigQ", "").partition("/")[0])


_USES: tuple[tuple[str, str, str, Callable[[ThreadLimitFacts], float | None], str], ...] = (
    ("RLIMIT_NOFILE", "open files", "files", lambda it: it.open_files, "fd"),
    ("RLIMIT_MEMLOCK", "locked memory", "bytes", lambda it: it.status.bytes_of("VmLck"), "status, VmLck"),
    ("RLIMIT_SIGPENDING", "pending signals", "signals", _pending_signals, "status, SigQ"),
    ("RLIMIT_NPROC", "processes", "threads", lambda it: it.user_threads, "all threads of its real uid"),
    ("RLIMIT_AS", "address space", "bytes", lambda it: it.status.bytes_of("VmSize"), "status, VmSize"),
    ("RLIMIT_DATA", "data", "bytes", lambda it: it.status.bytes_of("VmData"), "status, VmData"),
    ("RLIMIT_STACK", "main thread's stack", "bytes", lambda it: it.status.bytes_of("VmStk"), "status, VmStk"),
    ("RLIMIT_FSIZE", "file size", "bytes", lambda it: it.farthest_write_bytes, "fdinfo, farthest write position"),
    ("RLIMIT_CPU", "cpu time", "seconds", lambda it: it.cpu_s, "stat"),
    ("RLIMIT_CORE", "core", "bytes", lambda _: None, "limits"),
)


def limit_uses(facts: ThreadLimitFacts) -> list[LimitUse]:
    """Every rlimit that has a use to be compared with, the fullest first."""
    found = []
    for name, what, unit, use, source in _USES:
        value = facts.limits[name].soft if name in facts.limits else None
        used = use(facts)
        share = None
        if value is not None and value != UNLIMITED and used is not None:
            share = used / value if value else (1.0 if used else 0.0)
        found.append(LimitUse(name, what, unit, value, used, share, source))
    return sorted(found, key=lambda use: -(use.share or 0.0))
