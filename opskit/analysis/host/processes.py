"""Judge zombies and stopped processes. A few zombies are usual: a parent reaps its children when it gets to it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.finding import Entity, Finding, most_severe_first
from opskit.escape import printable
from opskit.quantities import duration, listed, plural
from opskit.shell import command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.finding import Severity
    from opskit.collect.host.processes import Facts, Parent, Stopped

_FEW, _MANY = 5, 20  # of one parent
_LARGEST_PID = 32_768  # the usual kernel.pid_max
_STATES = {"T": "is stopped by a signal", "t": "is stopped by a tracer", "D": "is blocked in the kernel (state D)"}


def judge(facts: Facts) -> list[Finding]:
    """The findings, the most severe first."""
    return most_severe_first([*_zombies(facts), *_stopped(facts)])


def _zombies(facts: Facts) -> Iterator[Finding]:
    for parent in facts.parents:
        if parent.zombies < (_FEW if parent.is_init else _MANY):
            continue
        severity: Severity = "warning" if parent.zombies >= _MANY else "note"
        yield Finding(
            "zombies",
            severity,
            Entity("process", parent.pid, parent.start_ticks),
            f"{plural(parent.zombies, 'zombie')} of {parent.pid} ({printable(parent.name)}), {_why(parent)}",
            f"state Z at both looks in {duration(facts.window_s)}: {printable(listed(parent.names, 2))}",
            next=command("ps", "-o", "pid,stat,lstart,comm", "--ppid", parent.pid),
            share=min(1.0, parent.zombies / _LARGEST_PID),
            window_s=facts.window_s or None,
        )


def _why(parent: Parent) -> str:
    if parent.state in _STATES:
        return f"which {_STATES[parent.state]} and does not reap them"
    if parent.is_init:
        return "which is PID 1 of its container and does not reap: start it below an init (docker run --init)"
    return "which does not reap them: each keeps a PID until it does, or ends"


def _stopped(facts: Facts) -> Iterator[Finding]:
    """JVMs are those of `opskit jvms`."""
    for each in facts.stopped:
        if each.is_jvm:
            continue
        # Ctrl-Z in a shell is usual; nobody stops a program without a terminal and forgets it on purpose.
        is_forgotten = each.tracer is None and not each.has_terminal
        yield Finding(
            "process-stopped", "warning" if is_forgotten else "note", Entity("process", each.pid, each.start_ticks),
            f"{each.pid} ({printable(each.name)}) is stopped {_by(each)}", f"state T at both looks in {duration(facts.window_s)}",
            fix=command("kill", "-CONT", each.pid) if each.tracer is None else None,
            next=command("ps", "-o", "pid,ppid,stat,lstart,comm", "-p", each.tracer or each.pid),
        )  # fmt: skip


def _by(each: Stopped) -> str:
    if each.tracer is not None:
        return f"by {each.tracer}, which traces it"
    return "by a signal, as by Ctrl-Z in its terminal" if each.has_terminal else "by a signal: it makes no progress"
