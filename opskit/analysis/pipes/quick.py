"""The quick look at pipes: a reader that takes its time is no trouble. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.pipes.judge import judge
from opskit.analysis.pipes.stuck import pipe_name

if TYPE_CHECKING:
    from opskit.analysis.finding import Finding
    from opskit.collect.pipes import Facts
    from opskit.collect.pipes_quick import Held, QuickFacts

_NEVER_READ = 64 << 10  # bytes in a new pipe: who has not written more has never seen anything read
_LONG_S = 5.0  # without a byte read: longer than a reader sleeps that paces itself


def judge_quick(quick: QuickFacts) -> list[Finding]:
    """The findings. A full pipe whose reader sleeps by itself is a warning where nothing was ever read from it, or nothing for long."""
    facts = quick.facts
    if facts is None:
        return []
    held = {pipe_name(key): (key, each) for key, each in quick.held.items()}
    found = []
    for finding in judge(facts).findings:
        name = str(finding.entity.id)
        key, writers = held.get(name, (b"", None))
        is_idle = finding.code == "pipe-full-writer-blocked" and finding.severity == "warning" and writers is not None
        is_brief = is_idle and writers is not None and not (_is_stuck(writers) or _cannot_read(facts, key))
        said = f"{name} is {finding.summary}" if finding.summary.startswith("full: ") else finding.summary
        found.append(finding._replace(severity="note" if is_brief else finding.severity, summary=said))
    return found


def _is_stuck(writers: Held) -> bool:
    never = writers.written_bytes is not None and writers.written_bytes <= _NEVER_READ
    return never or (writers.blocked_s is not None and writers.blocked_s >= _LONG_S)


def _cannot_read(facts: Facts, key: bytes) -> bool:
    """Whether a reader was stopped, or waits for one of the blocked writers to end: that does not end by itself."""
    blocks = facts.blocks
    if blocks is None:
        return False
    writers = {wait.pid for wait in blocks.writing if wait.on == key}
    readers = [each.pid for each in facts.holders if key in (each.ends or {}) and (each.ends or {})[key].read_fds]
    for pid in readers:
        waits = blocks.waits.get(pid) or ()
        if facts.processes[pid].state == "T" or any(wait.call == "wait" and wait.needs & writers for wait in waits):
            return True
    return False
