"""Full pipes: who is blocked on which, and deadlocks among them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding
from opskit.analysis.pipes.ranking import identity
from opskit.quantities import agreeing, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.analysis.finding import Severity
    from opskit.analysis.pipes.uses import ProcessUse
    from opskit.collect.pipes import Facts
    from opskit.proc.process import Process

_NOT_LOOKED_AT = "was not looked at: add --ends"
_STOPPED = "T"  # by a signal
_STATES = {_STOPPED: "stopped by a signal", "t": "stopped by a debugger"}
_SLOWLY = ("drains more slowly than that", "drain more slowly than that")


def verdict(facts: Facts, key: bytes, uses: Sequence[ProcessUse]) -> str | None:
    """`full: writer X is blocked, reader Y is not draining`; `unknown: …`; None where nothing is wrong."""
    fill, all_seen = facts.fills[key], facts.all_seen
    if fill.reason is not None:
        return f"unknown: {fill.reason}"
    stuck, waiting_for = _sides(facts, key, uses)
    if not stuck:
        if not fill.queued_bytes or fill.queued_bytes != fill.capacity_bytes:
            return None
        return "full: no writer is blocked on it" if all_seen else f"full: whether a writer is blocked {_NOT_LOOKED_AT}"
    start = f"full: {_named('writer', [_name(process) for process in stuck])} blocked"
    if not all_seen and all(process in stuck for process in waiting_for):
        return f"{start}; who should read {_NOT_LOOKED_AT}"
    if not waiting_for:
        return f"{start}, no reader is visible"
    readers = [_name(process) for process in waiting_for]
    if key in facts.drained:
        return f"{start}, {agreeing(len(readers), 'reader')} {', '.join(readers)} {_SLOWLY[len(readers) > 1]}"
    return f"{start}, {_named('reader', readers)} not draining"


def _named(side: str, names: Sequence[str]) -> str:
    """`writer 5 (yes) is`, `readers 6 (bash), 7 (sleep) are`."""
    return f"{agreeing(len(names), side)} {', '.join(names)} {agreeing(len(names), 'is', 'are')}"


def _sides(facts: Facts, key: bytes, uses: Sequence[ProcessUse]) -> tuple[list[Process], list[Process]]:
    """The processes that are blocked in a write to a pipe, and those that should read: others, if there are any."""
    pids = {entry.pid for entry in facts.blocked if entry.on == key}
    readers = [use.process for use in uses if use.read_fds]
    others = [process for process in readers if process.pid not in pids]
    return [use.process for use in uses if use.process.pid in pids], others or readers


def _name(process: Process) -> str:
    stopped = f", {_STATES[process.state]}" if process.state in _STATES else ""
    return f"{process.pid} ({process.command}{stopped})"


def _activity(facts: Facts, pid: int) -> str:
    """What a reader does meanwhile: `reads /dev/pts/3`, `sleeps in hrtimer_nanosleep`; empty where that is unknown."""
    waits = facts.waits.get(pid, ())
    if waits is None:
        return "is active"
    if len(waits) != 1:
        return f"sleeps in all of its {len(waits)} threads" if waits else ""
    [wait] = waits
    on = wait.on.decode("utf-8", "surrogateescape")
    children = ", ".join(map(str, sorted(wait.needs)))
    return {
        "read": on and f"reads {on}",
        "write": on and f"writes to {on}",
        "wait": f"waits for child {children}" if children else "waits for a child",
        "sleep": on and f"sleeps in {on}",
        "other": on and f"sleeps in {on}",
        "running": "is active",
    }[wait.call]


def _is_idle(facts: Facts, process: Process, writers: set[int]) -> bool:
    """Whether a reader waits for nothing but a timer, a lock, a signal or the blocked writers."""
    if process.state == _STOPPED:
        return True
    waits = facts.waits.get(process.pid) or ()
    return bool(waits) and all(
        wait.call == "sleep" or (wait.call == "wait" and bool(wait.needs & writers)) for wait in waits
    )


def deadlocked(facts: Facts, uses: Mapping[bytes, Sequence[ProcessUse]]) -> set[bytes]:
    """The full pipes that can never drain: each thread of their readers waits for others of these processes."""
    if not facts.all_seen:  # another process may hold a read end
        return set()
    # A pipe that drains ends the waits on it.
    needs = {
        pid: [frozenset() if wait.on in facts.drained else wait.needs for wait in waits]
        for pid, waits in facts.waits.items()
        if waits
    }
    hopeless = set(needs)
    while free := {pid for pid in hopeless if not all(each and each <= hopeless for each in needs[pid])}:
        hopeless -= free
    stuck = {entry.on for entry in facts.blocked} - facts.drained
    readers = {key: {use.process.pid for use in uses[key] if use.read_fds} for key in stuck}
    return {key for key, pids in readers.items() if pids and pids <= hopeless}


def full_pipe(facts: Facts, key: bytes, said: str, uses: Sequence[ProcessUse], *, is_deadlock: bool) -> Finding:
    """The finding about a full pipe; `said` is its verdict.

    A reader that waits for a user, a disk or a network reads on by itself: it is a warning only where every reader is idle.
    """
    kind, inode, _ = identity(key)
    stuck, waiting_for = _sides(facts, key, uses)
    entity = Entity("pipe", f"{kind}:[{inode}]")
    evidence = "/proc/PID/task/TID/syscall, FIONREAD"
    next_ = shell.command("opskit", "pipes", *sorted(each.pid for each in stuck), "--ends", "--fill") if stuck else None
    if is_deadlock:
        summary = f"deadlock: {said}; every process that could drain it is blocked itself"
        hidden = len(facts.scan.denied)
        if hidden:
            summary += f"; {plural(hidden, 'process', 'processes')} could not be read and may drain it"
        return Finding("pipe-deadlock", "warning" if hidden else "error", entity, summary, evidence, next=next_)
    if not facts.all_seen or key in facts.drained:
        return Finding("pipe-full-writer-blocked", "note", entity, said, evidence, next=next_)
    does = [(each.pid, _activity(facts, each.pid)) for each in waiting_for if each.state not in _STATES]
    summary = "; ".join([said, *(f"{pid} {activity}" for pid, activity in does if activity)])
    stopped = [each.pid for each in waiting_for if each.state == _STOPPED]
    writers = {each.pid for each in stuck}
    is_job = bool(stopped) and all(each.state == _STOPPED for each in stuck)  # suspended by Ctrl-Z
    idle = not is_job and bool(waiting_for) and all(_is_idle(facts, each, writers) for each in waiting_for)
    resume = shell.command("kill", "-CONT", *sorted(stopped)) if idle and stopped else None
    severity: Severity = "warning" if idle else "note"
    return Finding("pipe-full-writer-blocked", severity, entity, summary, evidence, fix=resume, next=next_)
