"""The file descriptors that a JVM needs to answer a client: one for its socket, one for each connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.jvm.attach.target import catches_sigquit
from opskit.proc.files.status import parse_status
from opskit.proc.open_files import open_files, raise_limit
from opskit.quantities import plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS


class Shortage(NamedTuple):
    """Too few descriptors: `no file descriptor left (100 of 100)`. `raise_it`: the command for a higher limit, None: none is allowed.

    `lacking`: what we lack for it; `kill`: the command for a thread dump on its stdout, None: SIGQUIT would kill it.
    """

    why: str
    raise_it: str | None
    lacking: str
    kill: str | None

    @property
    def sentence(self) -> str:
        """The reason with what to type."""
        ways = [f"`{self.raise_it}`{self.lacking}"] if self.raise_it else []
        ways += [f"`{self.kill}` and read its stdout"] if self.kill else []
        return f"{self.why}: {', or '.join(ways) or 'close some of them'}"


def shortage(fs: ProcFS, pid: int, *, listens: bool) -> Shortage | None:
    """What a JVM lacks that `listens` on its socket already, or that would have to make it. None: enough, or unknown. Raises GONE."""
    found = open_files(fs, pid)
    needed = 1 if listens else 2
    if found is None or found.free >= needed:
        return None
    status = fs.load(parse_status, pid, "status")
    left = plural(round(found.free), "file descriptor") if found.free else "no file descriptor"
    why = f"{left} left ({found.taken:,} of {found.limit.soft:,.0f})"
    why += f", and attaching takes {needed}" if found.free else ""
    kill = shell.command("kill", "-3", pid) if catches_sigquit(status) else None
    return Shortage(why, *raise_limit(fs, pid, status, found.limit), kill)
