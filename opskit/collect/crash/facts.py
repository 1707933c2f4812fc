"""What is known of crashed JVMs: their reports, the files beside them, and places to look where no file was named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.logs.crashes.record import CrashReport


class Request(NamedTuple):
    """Files and directories as the user named them; none: look where JVMs write their reports."""

    names: Sequence[str] = ()


class Core(NamedTuple):
    """A core file that exists, or the sentence of the report about it, with what this machine says of it."""

    path: str | None
    size_bytes: int | None
    said: str | None


class Read(NamedTuple):
    """A report of a file. `modified_s`: of the file, since the epoch; of a report in a program's output, the time in it."""

    name: str
    report: CrashReport
    core: Core | None = None
    modified_s: float | None = None
    replay: str | None = None  # path of replay_pidN.log, the compiler's replay file beside it


class Unread(NamedTuple):
    """A file that is no crash report, or an unreadable one."""

    name: str
    why: str


class Place(NamedTuple):
    """A place where JVMs write reports: `what` names it (ErrorFile of PID 42; its working directory; /tmp). `found`: report files."""

    path: str
    what: str
    found: Sequence[str] = ()
    why_not: str | None = None


class Facts(NamedTuple):
    """`places`: only where no file was named. `core_pattern`: of the kernel. `has_coredumpctl`: whether it is installed."""

    read: Sequence[Read]
    unread: Sequence[Unread] = ()
    places: Sequence[Place] = ()
    core_pattern: str | None = None
    has_coredumpctl: bool = False
