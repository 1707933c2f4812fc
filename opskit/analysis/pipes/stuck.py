"""Full pipes: who is blocked on which, and deadlocks among them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding
from opskit.analysis.pipes.ranking import identity
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.analysis.pipes.uses import ProcessUse
    from opskit.collect.pipes import Facts
    from opskit.proc.process import Process

_NOT_LOOKED_AT = "was not looked at: add --ends"


def verdict(facts: Facts, key: bytes, uses: Sequence[ProcessUse]) -> str | None:
    """`full: writer X is blocked, reader Y is not draining`; `unknown: …`; None where nothing is wrong."""
    fill, all_seen = facts.fills[key], facts.all_seen
    if fill.reason is not None:
        return f"unknown: {fill.reason}"
    stuck = {entry.pid for entry in facts.blocked if entry.key == key}
    readers = [use.process for use in uses if use.read_fds]
    if not stuck:
        if not fill.queued_bytes or fill.queued_bytes != fill.capacity_bytes:
            return None
        return "full: no writer is blocked on it" if all_seen else f"full: whether a writer is blocked {_NOT_LOOKED_AT}"
    writers = ", ".join(_name(use.process) for use in uses if use.process.pid in stuck)
    waiting_for = [process for process in readers if process.pid not in stuck]
    if not waiting_for and not all_seen:
        return f"full: writer {writers} is blocked; who should read {_NOT_LOOKED_AT}"
    waiting_for = waiting_for or readers
    if not waiting_for:
        return f"full: writer {writers} is blocked, no reader is visible"
    how = "drains more slowly than that" if key in facts.drained else "is not draining"
    return f"full: writer {writers} is blocked, reader {', '.join(map(_name, waiting_for))} {how}"


def _name(process: Process) -> str:
    stopped = ", stopped by a signal" if process.state in ("T", "t") else ""
    return f"{process.pid} ({process.command}{stopped})"


def deadlocked(facts: Facts, uses: Mapping[bytes, Sequence[ProcessUse]]) -> set[bytes]:
    """The full pipes whose readers are all blocked, with every thread, in writes to such pipes: none of them can ever drain."""
    if not facts.all_seen:  # another process may hold a read end
        return set()
    stuck = {entry.key for entry in facts.blocked} - facts.drained
    while True:
        waiting: dict[int, set[int]] = {}
        for entry in facts.blocked:
            if entry.key in stuck:
                waiting.setdefault(entry.pid, set()).add(entry.tid)
        hopeless = {pid for pid, tids in waiting.items() if len(tids) >= facts.threads.get(pid, 0) > 0}
        readers = {key: [use.process.pid for use in uses[key] if use.read_fds] for key in stuck}
        still = {key for key, pids in readers.items() if pids and all(pid in hopeless for pid in pids)}
        if still == stuck:
            return stuck
        stuck = still


def full_pipe(facts: Facts, key: bytes, said: str, *, is_deadlock: bool) -> Finding:
    """The finding about a full pipe; `said` is its verdict."""
    kind, inode, _ = identity(key)
    writers = sorted({entry.pid for entry in facts.blocked if entry.key == key})
    entity = Entity("pipe", f"{kind}:[{inode}]")
    evidence = "/proc/PID/task/TID/syscall, FIONREAD"
    next_ = shell.command("opskit", "pipes", *writers, "--ends", "--fill") if writers else None
    if is_deadlock:
        summary = f"deadlock: {said}; every process that could drain it is blocked on such a pipe itself"
        hidden = len(facts.scan.denied)
        if hidden:
            summary += f", unless it is one of the {plural(hidden, 'process', 'processes')} that could not be read"
        return Finding("pipe-deadlock", "warning" if hidden else "error", entity, summary, evidence, next=next_)
    stuck = facts.all_seen and said.endswith("is not draining")
    return Finding("pipe-full-writer-blocked", "warning" if stuck else "note", entity, said, evidence, next=next_)
