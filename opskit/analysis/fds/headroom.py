"""How near a process is to its limit on open files. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Entity, Finding
from opskit.proc.files.limits import is_nearly_full
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.proc.open_files import OpenFiles
    from opskit.proc.process import Process

# A sandbox closes the door behind it: sshd, before a user has logged in, with a limit of 0 or 1.
_SMALLEST_LIMIT = 16


def is_near(open_files: OpenFiles) -> bool:
    """Whether more than 80 % of the limit are used, and it is not a sandbox's."""
    limit = open_files.limit.soft
    return limit >= _SMALLEST_LIMIT and is_nearly_full(limit, open_files.taken)


def nearly_used(process: Process, open_files: OpenFiles, raise_limit: str | None, evidence: str = "") -> Finding:
    """The finding, as `opskit limits PID` has it; none left is an error. `evidence`: what the descriptors are."""
    limit, left = open_files.limit.soft, round(open_files.free)
    head = f"{plural(left, 'more file')} can be opened" if left else "no file descriptor left"
    read = f"/proc/{process.pid}/fd, /proc/{process.pid}/limits"
    return Finding(
        "rlimit-nearly-used", "warning" if left else "error", Entity("process", process.pid, process.start_ticks, HOST),
        f"{process.command} ({process.pid}): {head}, {open_files.taken:,} of {limit:,.0f} open files are used (RLIMIT_NOFILE)",
        f"{evidence}; {read}" if evidence else read, fix=raise_limit,
        next=shell.command("opskit", "fds", process.pid, "-w"), share=min(1.0, open_files.taken / limit),
    )  # fmt: skip
