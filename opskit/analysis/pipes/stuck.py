"""Full pipes: who is blocked on which, and deadlocks among them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding
from opskit.analysis.pipes.openings import MOST_NAMES, who_are
from opskit.analysis.pipes.ranking import identity
from opskit.quantities import agreeing, listed

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
    verdicts |= {key: f"deadlock; {verdicts[key]}" for key in stuck}
    waiting = [_full_pipe(facts, blocks, key, text, uses[key]) for key, text in full.items() if key not in stuck]
    return verdicts, [*_deadlocks(facts, blocks, uses, stuck), *waiting]


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
    start = f"full: {_named('writer', stuck)} blocked"
    if not everywhere and all(process in stuck for process in waiting_for):
        return f"{start}; who should read {_NOT_LOOKED_AT}"
    if not waiting_for:
        return f"{start}, no reader is visible"
    if key in blocks.drained:
        many = len(waiting_for)
        return f"{start}, {agreeing(many, 'reader')} {_list(waiting_for)} {agreeing(many, *_SLOWLY)}"
    return f"{start}, {_named('reader', waiting_for)} not draining"


def _named(side: str, processes: Sequence[Process]) -> str:
    """`writer 5 (yes) is`, `readers 6 (bash), 7 (sleep) are`."""
    return f"{agreeing(len(processes), side)} {_list(processes)} {agreeing(len(processes), 'is', 'are')}"


def _sides(blocks: Blocks, key: bytes, uses: Sequence[ProcessUse]) -> tuple[list[Process], list[Process]]:
    """The processes that are blocked in a write to a pipe, and those that should read: others, if there are any."""
    pids = {entry.pid for entry in blocks.writing if entry.on == key}
    readers = [use.process for use in uses if use.read_fds]
    others = [process for process in readers if process.pid not in pids]
    return [use.process for use in uses if use.process.pid in pids], others or readers


def _list(processes: Sequence[Process]) -> str:
    return listed([_name(process) for process in processes], MOST_NAMES)


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
    # A process that is stopped, whatever it waited for, goes on with that when it is resumed.
    states = {pid: process.state for pid, process in facts.processes.items()}
    blocks = blocks._replace(waits={pid: each for pid, each in blocks.waits.items() if states.get(pid) not in _STATES})
    stuck = {entry.on for entry in blocks.writing} - blocks.drained
    blocked = {entry.pid for entry in blocks.writing}
    readers = {key: frozenset(use.process.pid for use in uses[key] if use.read_fds) for key in stuck}
    writers = {key: {entry.pid for entry in blocks.writing if entry.on == key} for key in stuck}
    both = {use.process.pid for key in stuck for use in uses[key] if use.read_fds and use.write_fds}
    found = {}
    for bystanders in (frozenset(both - blocked), frozenset[int]()):  # the proof without any replaces the weaker one
        hopeless = hopeless_processes(blocks, bystanders)
        for key, pids in readers.items():
            left = pids - bystanders
            if left and left <= hopeless and (left - writers[key] or not pids & bystanders):
                found[key] = pids & bystanders
    return found


def hopeless_processes(blocks: Blocks, bystanders: frozenset[int] = frozenset()) -> set[int]:
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


def _deadlocks(
    facts: Facts, blocks: Blocks, uses: Mapping[bytes, Sequence[ProcessUse]], stuck: Mapping[bytes, frozenset[int]]
) -> list[Finding]:
    """One finding for the full pipes whose processes wait for each other."""
    groups: list[tuple[set[int], list[bytes]]] = []
    for key in stuck:
        pids, keys = {process.pid for side in _sides(blocks, key, uses[key]) for process in side} - stuck[key], [key]
        for group in [group for group in groups if group[0] & pids]:
            pids, keys = pids | group[0], [*group[1], *keys]
            groups.remove(group)
        groups.append((pids, keys))
    return [
        _deadlock(facts, blocks, uses, keys, frozenset().union(*(stuck[each] for each in keys))) for _, keys in groups
    ]


def _deadlock(
    facts: Facts,
    blocks: Blocks,
    uses: Mapping[bytes, Sequence[ProcessUse]],
    keys: Sequence[bytes],
    bystanders: frozenset[int],
) -> Finding:
    sides = [(pipe_name(key), *_sides(blocks, key, uses[key])) for key in keys]
    parts = []
    for name, writers, readers in sides:
        others = [reader for reader in readers if reader.pid not in bystanders]
        parts.append(f"{_named('writer', writers)} blocked on full {name}, which {_list(others)} should read")
    does = [(each.pid, _activity(blocks, each.pid)) for each in sides[0][2] if each.pid not in bystanders]
    if len(keys) == 1:
        parts += [f"{pid} {activity}" for pid, activity in does[:MOST_NAMES] if activity]
    proof = f"every process that could drain {agreeing(len(keys), 'it', 'them')} is blocked itself"
    start = "deadlock"
    if bystanders:
        start = f"deadlock unless {_list([facts.processes[pid] for pid in sorted(bystanders)])} reads"
        proof = "every other process that could drain " + f"{agreeing(len(keys), 'it', 'them')} is blocked itself"
    hidden = facts.scan.denied
    if hidden:
        named = f"{agreeing(len(hidden), 'PID', 'PIDs')} {listed([*map(str, hidden)], MOST_NAMES)}"
        proof += f"; {named} could not be read and may drain {agreeing(len(keys), 'it', 'them')}"
    severity: Severity = "warning" if hidden or bystanders else "error"
    pids = sorted({process.pid for _, writers, _ in sides for process in writers})
    summary = f"{start}: {listed(parts, MOST_NAMES, '; ')}; {proof}"
    entity = _entity(sides[0][0], sides[0][1])
    return Finding("pipe-deadlock", severity, entity, summary, _EVIDENCE, fix=breaks(pids), next=_closer(facts, pids))


def _entity(name: str, writers: Sequence[Process]) -> Entity:
    """The pipe, in the first process that is blocked on it."""
    return Entity("pipe", name, inside=_of_process(writers[0]) if writers else None)


def _of_process(process: Process) -> Entity:
    return Entity("process", process.pid, process.start_ticks)


def pipe_name(key: bytes) -> str:
    """`pipe:[INODE]`."""
    kind, inode, _ = identity(key)
    return f"{kind}:[{inode}]"


def breaks(pids: Sequence[int]) -> str:
    """The command that ends one process of a deadlock."""
    return f"{shell.command('kill', pids[0])} ends it: the others get end of file or EPIPE"


def _closer(facts: Facts, pids: list[int]) -> str | None:
    """The same look at these processes alone; where that was it: what they are."""
    if not pids:
        return None
    if sorted(facts.ask.pids) == pids:
        return who_are(pids)
    return shell.command("opskit", "pipes", *pids, "--ends", "--fill")


def _full_pipe(facts: Facts, blocks: Blocks, key: bytes, said: str, uses: Sequence[ProcessUse]) -> Finding:
    """The finding about a full pipe; `said` is its verdict.

    A reader that waits for a user, a disk or a network reads on by itself: it is a warning only where every reader is idle.
    """
    stuck, waiting_for = _sides(blocks, key, uses)
    entity = _entity(pipe_name(key), stuck)
    code, next_ = "pipe-full-writer-blocked", _closer(facts, sorted(each.pid for each in stuck))
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
    reader = _of_process(waiting_for[0]) if len(waiting_for) == 1 else None
    return Finding(code, severity, entity, summary, _EVIDENCE, fix=resume, next=next_, waits_for=reader)
