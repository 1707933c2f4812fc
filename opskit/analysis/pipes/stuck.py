"""Full pipes: who is blocked on which, and deadlocks among them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding
from opskit.analysis.pipes.openings import MOST_NAMES, who_are
from opskit.analysis.pipes.ranking import identity
from opskit.quantities import agreeing, listed, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.analysis.finding import Severity
    from opskit.analysis.pipes.uses import ProcessUse
    from opskit.collect.pipe_blocks import Blocks
    from opskit.collect.pipes import Facts
    from opskit.proc.process import Process

_EVIDENCE = "/proc/PID/task/TID/syscall, FIONREAD"
_NOT_LOOKED_AT = "was not looked at: add --ends"
_STOPPED = "T"  # by a signal
_STATES = {_STOPPED: "stopped by a signal", "t": "stopped by a debugger"}
_SLOWLY = ("drains more slowly than that", "drain more slowly than that")


def full_pipes(
    facts: Facts, blocks: Blocks, uses: Mapping[bytes, Sequence[ProcessUse]]
) -> tuple[dict[bytes, str], list[Finding]]:
    """The verdict on each pipe whose fill was asked for, and a finding for each full one."""
    if not facts.ask.fill:
        return {}, []
    stuck = _deadlocked(facts, blocks, uses)
    said = {key: _verdict(facts, blocks, key, uses[key]) for key in facts.fills}
    verdicts = {key: text for key, text in said.items() if text}
    full = {key: text for key, text in verdicts.items() if text.startswith("full")}
    return verdicts, [_full_pipe(facts, blocks, key, text, uses[key], stuck.get(key)) for key, text in full.items()]


def _verdict(facts: Facts, blocks: Blocks, key: bytes, uses: Sequence[ProcessUse]) -> str | None:
    """`full: writer X is blocked, reader Y is not draining`; `unknown: …`; None where nothing is wrong."""
    fill, everywhere = facts.fills[key], facts.ask.everywhere
    if fill.reason is not None:
        return f"unknown: {fill.reason}"
    stuck, waiting_for = _sides(blocks, key, uses)
    if not stuck:
        if not fill.queued_bytes or fill.queued_bytes != fill.capacity_bytes:
            return None
        return (
            "full: no writer is blocked on it" if everywhere else f"full: whether a writer is blocked {_NOT_LOOKED_AT}"
        )
    start = f"full: {_named('writer', [_name(process) for process in stuck])} blocked"
    if not everywhere and all(process in stuck for process in waiting_for):
        return f"{start}; who should read {_NOT_LOOKED_AT}"
    if not waiting_for:
        return f"{start}, no reader is visible"
    readers = [_name(process) for process in waiting_for]
    if key in blocks.drained:
        return f"{start}, {agreeing(len(readers), 'reader')} {listed(readers, MOST_NAMES)} {_SLOWLY[len(readers) > 1]}"
    return f"{start}, {_named('reader', readers)} not draining"


def _named(side: str, names: Sequence[str]) -> str:
    """`writer 5 (yes) is`, `readers 6 (bash), 7 (sleep) are`."""
    return f"{agreeing(len(names), side)} {listed(names, MOST_NAMES)} {agreeing(len(names), 'is', 'are')}"


def _sides(blocks: Blocks, key: bytes, uses: Sequence[ProcessUse]) -> tuple[list[Process], list[Process]]:
    """The processes that are blocked in a write to a pipe, and those that should read: others, if there are any."""
    pids = {entry.pid for entry in blocks.writing if entry.on == key}
    readers = [use.process for use in uses if use.read_fds]
    others = [process for process in readers if process.pid not in pids]
    return [use.process for use in uses if use.process.pid in pids], others or readers


def _name(process: Process) -> str:
    stopped = f", {_STATES[process.state]}" if process.state in _STATES else ""
    return f"{process.pid} ({process.command}{stopped})"


def _activity(blocks: Blocks, pid: int) -> str:
    """What a reader does meanwhile: `reads /dev/pts/3`, `sleeps in hrtimer_nanosleep`; empty where that is unknown."""
    waits = blocks.waits.get(pid, ())
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


def _is_idle(blocks: Blocks, process: Process, writers: set[int]) -> bool:
    """Whether a reader waits for nothing but a timer, a lock, a signal or the blocked writers."""
    if process.state == _STOPPED:
        return True
    waits = blocks.waits.get(process.pid) or ()
    return bool(waits) and all(
        wait.call == "sleep" or (wait.call == "wait" and bool(wait.needs & writers)) for wait in waits
    )


def _deadlocked(
    facts: Facts, blocks: Blocks, uses: Mapping[bytes, Sequence[ProcessUse]]
) -> dict[bytes, frozenset[int]]:
    """The full pipes whose readers are blocked for as long as they are full, and who else holds their read ends.

    Such a bystander holds both ends of a pipe, as the process that made it and did not close its copies; it has not read.
    """
    if not facts.ask.everywhere:  # another process may hold a read end
        return {}
    stuck = {entry.on for entry in blocks.writing} - blocks.drained
    blocked = {entry.pid for entry in blocks.writing}
    readers = {key: frozenset(use.process.pid for use in uses[key] if use.read_fds) for key in stuck}
    both = {use.process.pid for key in stuck for use in uses[key] if use.read_fds and use.write_fds}
    found = {}
    for bystanders in (frozenset(both - blocked), frozenset[int]()):  # the proof without any replaces the weaker one
        hopeless = _hopeless(blocks, bystanders)
        for key, pids in readers.items():
            if pids - bystanders and pids - bystanders <= hopeless:
                found[key] = pids & bystanders
    return found


def _hopeless(blocks: Blocks, bystanders: frozenset[int]) -> set[int]:
    """The processes each of whose threads waits only for others of them; `bystanders` are taken to do nothing."""
    # A pipe that drains ends the waits on it.
    needs = {
        pid: [frozenset() if wait.on in blocks.drained else wait.needs - bystanders for wait in waits]
        for pid, waits in blocks.waits.items()
        if waits and pid not in bystanders
    }
    hopeless = set(needs)
    while free := {pid for pid in hopeless if not all(each and each <= hopeless for each in needs[pid])}:
        hopeless -= free
    return hopeless


def _deadlock(facts: Facts, entity: Entity, said: str, stuck: Sequence[Process], bystanders: frozenset[int]) -> Finding:
    summary = f"deadlock: {said.removeprefix('full: ')}; every process that could drain it is blocked itself"
    if bystanders:
        idle = listed([_name(facts.processes[pid]) for pid in sorted(bystanders)], MOST_NAMES)
        summary = (
            f"deadlock unless {idle} reads: {said.removeprefix('full: ')}; the other readers are blocked themselves"
        )
    hidden = len(facts.scan.denied)
    if hidden:
        summary += f"; {plural(hidden, 'process', 'processes')} could not be read and may drain it"
    severity: Severity = "warning" if hidden or bystanders else "error"
    pids = sorted(each.pid for each in stuck)
    ends = f"{shell.command('kill', *pids[:1])} ends it: the others get end of file or EPIPE" if pids else None
    return Finding("pipe-deadlock", severity, entity, summary, _EVIDENCE, fix=ends, next=_closer(facts, pids))


def _closer(facts: Facts, pids: list[int]) -> str | None:
    """The same look at these processes alone; where that was it: what they are."""
    if not pids:
        return None
    if sorted(facts.ask.pids) == pids:
        return who_are(pids)
    return shell.command("opskit", "pipes", *pids, "--ends", "--fill")


def _full_pipe(
    facts: Facts, blocks: Blocks, key: bytes, said: str, uses: Sequence[ProcessUse], bystanders: frozenset[int] | None
) -> Finding:
    """The finding about a full pipe; `said` is its verdict; `bystanders` None: no deadlock.

    A reader that waits for a user, a disk or a network reads on by itself: it is a warning only where every reader is idle.
    """
    kind, inode, _ = identity(key)
    stuck, waiting_for = _sides(blocks, key, uses)
    entity = Entity("pipe", f"{kind}:[{inode}]")
    code, next_ = "pipe-full-writer-blocked", _closer(facts, sorted(each.pid for each in stuck))
    if bystanders is not None:
        return _deadlock(facts, entity, said, stuck, bystanders)
    if not facts.ask.everywhere or key in blocks.drained:
        return Finding(code, "note", entity, said, _EVIDENCE, next=next_)
    does = [(each.pid, _activity(blocks, each.pid)) for each in waiting_for if each.state not in _STATES]
    summary = "; ".join([said, *(f"{pid} {activity}" for pid, activity in does[:MOST_NAMES] if activity)])
    stopped = [each.pid for each in waiting_for if each.state == _STOPPED]
    writers = {each.pid for each in stuck}
    is_job = bool(stopped) and all(each.state == _STOPPED for each in stuck)  # suspended by Ctrl-Z
    idle = not is_job and bool(waiting_for) and all(_is_idle(blocks, each, writers) for each in waiting_for)
    resume = shell.command("kill", "-CONT", *sorted(stopped)) if idle and stopped else None
    severity: Severity = "warning" if idle else "note"
    return Finding(code, severity, entity, summary, _EVIDENCE, fix=resume, next=next_)
