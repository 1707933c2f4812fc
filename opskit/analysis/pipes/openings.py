"""Processes that are blocked in open() of a FIFO whose other end nobody has open. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding
from opskit.quantities import agreeing, listed

if TYPE_CHECKING:
    from opskit.analysis.finding import Severity
    from opskit.collect.pipe_blocks import Blocks
    from opskit.collect.pipes import Facts

MOST_NAMES = 5  # of processes in a sentence


def openings(facts: Facts, blocks: Blocks) -> list[Finding]:
    """A finding a FIFO and direction. A reader may wait for commands by design: that is a note."""
    waiting: dict[tuple[bytes | None, bool], set[int]] = {}
    for each in blocks.opening:
        waiting.setdefault((each.path, each.writes), set()).add(each.pid)
    return [_opening(facts, path, sorted(pids), writes=writes) for (path, writes), pids in waiting.items()]


def _opening(facts: Facts, path: bytes | None, pids: list[int], *, writes: bool) -> Finding:
    side, other, act = ("writer", "reading", "reads") if writes else ("reader", "writing", "writes to")
    fifo = (
        "a FIFO, whose path could not be read"
        if path is None
        else f"the FIFO {path.decode('utf-8', 'surrogateescape')}"
    )
    names = listed([f"{facts.processes[pid].command}[{pid}]" for pid in pids], MOST_NAMES)
    severity: Severity = "warning" if writes else "note"
    return Finding(
        "fifo-open-blocked", severity, Entity("process", pids[0], facts.processes[pids[0]].start_ticks),
        f"{agreeing(len(pids), side)} {names} {agreeing(len(pids), 'is', 'are')} blocked in open() of {fifo}: "
        f"no process has it open for {other}",
        "for a second, /proc/PID/task/TID/syscall and wchan",
        fix=f"start the program that {act} it; or end the {side}: {shell.command('kill', *pids[:MOST_NAMES])}" if writes else None,
        next=who_are(pids),
    )  # fmt: skip


def who_are(pids: list[int]) -> str:
    """The command that shows what these processes are, who started them and when."""
    return shell.command("ps", "-o", "pid,ppid,lstart,args", "-p", ",".join(map(str, pids[:MOST_NAMES])))
