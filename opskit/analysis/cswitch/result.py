"""What `opskit cswitch` concludes. None: unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.analysis.finding import Finding
    from opskit.collect.cswitch.facts import Facts, ProcessWaits, Thread


class Row(NamedTuple):
    """A thread and what it suffers from in a few words (`why`): throttled, softirqs, pinned, outnumbered, ping-pong, stolen; empty: nothing."""

    thread: Thread
    why: str = ""


class ProcessRow(NamedTuple):
    """A process of the machine, likewise."""

    waits: ProcessWaits
    why: str = ""


class Result(NamedTuple):
    """`verdict`: sentences, the first is the answer. `rows`: of a process, those that wait longest first. `processes`: of the machine, likewise."""

    facts: Facts
    verdict: tuple[str, ...]
    rows: tuple[Row, ...]
    processes: tuple[ProcessRow, ...]
    findings: tuple[Finding, ...]
    next: str | None = None
