"""Readers of empty pipes whose end of file cannot come, since a process that does not write holds the write end. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding
from opskit.analysis.pipes.openings import MOST_NAMES, who_are
from opskit.analysis.pipes.stuck import breaks, hopeless_processes
from opskit.proc.lineage import Past
from opskit.quantities import agreeing, listed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.analysis.pipes.uses import ProcessUse
    from opskit.collect.pipe_blocks import Blocks
    from opskit.collect.pipes import Facts
    from opskit.proc.process import Process

_STANDARD_FDS = 3
# Signals whose handlers do not write to a pipe to wake the reader: SIGINT, which Python and shells catch, and faults.
_NO_WAKE_UP = sum(1 << number - 1 for number in (2, 4, 5, 6, 7, 8, 11))


class _Writer(NamedTuple):
    """A process with the write end. `is_quiet`: it has never written, and nothing outside wakes it.

    `is_left`: the process that started it has ended, and it runs on. `leaked_fd`: the end is on this fd and on no standard stream.
    """

    process: Process
    is_quiet: bool = False
    is_left: bool = False
    leaked_fd: int | None = None

    @property
    def is_stray(self) -> bool:
        """Whether it has the end by accident."""
        return self.is_left or self.leaked_fd is not None


class _Cycle(NamedTuple):
    """Processes that read empty pipes, which only processes could write to that wait for them in turn."""

    keys: list[bytes]
    pids: set[int]  # all of them
    reading: Sequence[Process]
    others: Sequence[_Writer]

    @property
    def waits_for(self) -> set[int]:
        """The PIDs of the writers."""
        return {other.process.pid for other in self.others}


def starved(facts: Facts, blocks: Blocks, uses: Mapping[bytes, Sequence[ProcessUse]]) -> dict[bytes, Finding]:
    """A finding for each empty pipe that only quiet or stray processes could write to.

    It is a warning where each of them is both: then neither data nor the end of file comes by itself.
    """
    found: dict[bytes, Finding] = {}
    cycles: list[_Cycle] = []
    hopeless = hopeless_processes(blocks)
    for key in dict.fromkeys(wait.on for wait in blocks.reading):
        readers = {wait.pid for wait in blocks.reading if wait.on == key}
        reading = [use.process for use in uses[key] if use.process.pid in readers]
        also = {other for wait in blocks.reading if wait.on == key for other in wait.also}
        holders = [use for use in uses[key] if use.write_fds]
        polled = {use.process.pid: use for other in also for use in uses.get(other, ()) if use.write_fds}
        holders += [use for pid, use in polled.items() if pid not in {each.process.pid for each in holders}]
        itself = [use for use in holders if use.process.pid in readers]
        others = [_writer(facts, blocks, key, use.process, readers) for use in holders if use not in itself]
        if itself:
            finding = _starved_by_itself(reading) if not others and _starves_itself(blocks, itself[0], key) else None
        elif {other.process.pid for other in others} <= hopeless:
            finding = None
            pids = readers | {other.process.pid for other in others}
            cycles.append(_Cycle([key], pids, reading, others))
        else:
            finding = _starved(blocks, reading, others)
        if finding:
            found[key] = finding
    for cycle in _joined(cycles):
        found |= dict.fromkeys(cycle.keys, _cycle(cycle.reading, cycle.others))
    return found


def _joined(cycles: Sequence[_Cycle]) -> Sequence[_Cycle]:
    """One for each deadlock: those with a process in common are the same. The one with the lowest PID speaks for it."""
    joined: list[_Cycle] = []
    for each in sorted(cycles, key=lambda cycle: min(process.pid for process in cycle.reading)):
        known = next((one for one in joined if one.pids & each.pids), None)
        if known is None:
            joined.append(each)
            continue
        known.keys.extend(each.keys)
        known.pids.update(each.pids)
        if known.waits_for == each.waits_for:
            joined[joined.index(known)] = known._replace(reading=[*known.reading, *each.reading])
    return joined


def _starved(blocks: Blocks, reading: Sequence[Process], others: Sequence[_Writer]) -> Finding | None:
    is_proven = all(other.is_quiet and other.is_stray for other in others)
    # A process with several threads reads its stdin for commands, and does not wait for their end.
    is_likely = all(len(blocks.waits.get(process.pid) or ()) == 1 for process in reading)
    if not others or not (is_proven or (is_likely and all(other.is_quiet or other.is_left for other in others))):
        return None
    holding = f"{_names(others)} {agreeing(len(others), 'holds', 'hold')} the write end"
    return Finding(
        "pipe-end-of-file-missing", "warning" if is_proven else "note", _entity(reading), _waits(reading, holding),
        _evidence(others), fix=_fix(others) if is_proven else None,
        next=who_are([other.process.pid for other in others]),
    )  # fmt: skip


def _starved_by_itself(reading: Sequence[Process]) -> Finding:
    return Finding(
        "pipe-end-of-file-missing", "warning", _entity(reading), _waits(reading, "it holds the write end itself"),
        "no other process has a write end, /proc/PID/task/TID/syscall", fix="close the write end in it before it reads",
        next=who_are([reading[0].pid]),
    )  # fmt: skip


def _cycle(reading: Sequence[Process], others: Sequence[_Writer]) -> Finding:
    who = listed([f"{each.command}[{each.pid}]" for each in reading], MOST_NAMES)
    wait = agreeing(len(reading), "waits", "wait")
    they = agreeing(len(others), "waits", "wait")
    summary = (
        f"deadlock: {who} {wait} for data from {_names(others)}, which {they} for {who} in turn, or for others that do"
    )
    pids = sorted({*(each.pid for each in reading), *(other.process.pid for other in others)})
    evidence = "each thread sleeps in a read, a write or a wait, /proc/PID/task/TID/syscall"
    return Finding(
        "pipe-deadlock", "warning", _entity(reading), summary, evidence, fix=breaks(pids), next=who_are(pids)
    )


def _entity(reading: Sequence[Process]) -> Entity:
    return Entity("process", reading[0].pid, reading[0].start_ticks)


def _waits(reading: Sequence[Process], holding: str) -> str:
    """`cat waits for end of file, which cannot come while sleep[27823] holds the write end`."""
    who = listed(list(dict.fromkeys(each.command for each in reading)), MOST_NAMES)
    return f"{who} {agreeing(len(reading), 'waits', 'wait')} for end of file, which cannot come while {holding}"


def _names(others: Sequence[_Writer]) -> str:
    return listed([f"{other.process.command}[{other.process.pid}]" for other in others], MOST_NAMES)


def _writer(facts: Facts, blocks: Blocks, key: bytes, process: Process, readers: set[int]) -> _Writer:
    pid = process.pid
    past, waits = blocks.pasts.get(pid, Past()), blocks.waits.get(pid)
    families = [blocks.pasts.get(reader, Past()) for reader in readers]
    if any(pid in family.ancestors for family in families):
        return _Writer(process)  # it made the pipe for the reader, and may write at any time
    is_quiet = bool(waits) and past.written_bytes == 0 and all(wait.call == "sleep" for wait in waits or ())
    is_left = past.is_adopted and not all(family.is_adopted for family in families)
    return _Writer(process, is_quiet, is_left, None if readers & past.ancestors else _leaked_fd(facts, key, pid))


def _leaked_fd(facts: Facts, key: bytes, pid: int) -> int | None:
    """The write end's fd, if it is the only one of the process on this pipe and none of its standard streams."""
    ends = [end for holder in facts.holders if holder.pid == pid and (end := (holder.ends or {}).get(key))]
    if len(ends) != 1 or (ends[0].read_fds, ends[0].write_fds) != (0, 1) or ends[0].fd < _STANDARD_FDS:
        return None
    return ends[0].fd


def _starves_itself(blocks: Blocks, use: ProcessUse, key: bytes) -> bool:
    """Whether a process with one thread reads a pipe that only it could write to, in no signal handler either."""
    past, waits = blocks.pasts.get(use.process.pid, Past()), blocks.waits.get(use.process.pid)
    no_handler = past.caught is not None and not past.caught & ~_NO_WAKE_UP
    return key.startswith(b"pipe:") and use.read_fds == use.write_fds == 1 and len(waits or ()) == 1 and no_handler


def _evidence(others: Sequence[_Writer]) -> str:
    many = len(others)
    quiet = f"{agreeing(many, 'it has', 'they have')} written nothing so far and {agreeing(many, 'sleeps', 'sleep')}"
    left = f"{agreeing(many, 'it outlived the process', 'they outlived the processes')} that started {agreeing(many, 'it', 'them')}"
    leaked = f"inherited as fd {others[0].leaked_fd}"
    parts = (
        all(other.is_quiet for other in others) and quiet,
        all(other.is_left for other in others) and left,
        all(other.leaked_fd == others[0].leaked_fd is not None for other in others) and leaked,
    )
    return "; ".join(part for part in parts if part)


def _fix(others: Sequence[_Writer]) -> str:
    """How to end the wait now, and how to avoid it."""
    now = f"{shell.command('kill', *[other.process.pid for other in others[:MOST_NAMES]])} ends the wait"
    fds = [other.leaked_fd for other in others if other.leaked_fd is not None]
    later = f"with fd {fds[0]} closed ({fds[0]}>&-)" if fds else "with its output redirected (> FILE 2>&1)"
    return f"{now}; to avoid it, start {agreeing(len(others), 'it', 'them')} {later}"
