"""Readers of empty pipes whose end of file cannot come, since a process that does not write holds the write end. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding
from opskit.analysis.pipes.openings import MOST_NAMES, who_are
from opskit.proc.lineage import Past
from opskit.quantities import agreeing, listed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.analysis.pipes.uses import ProcessUse
    from opskit.collect.pipe_blocks import Blocks
    from opskit.collect.pipes import Facts

_STANDARD_FDS = 3
# Signals whose handlers do not write to a pipe to wake the reader: SIGINT, which Python and shells catch, and faults.
_NO_WAKE_UP = sum(1 << number - 1 for number in (2, 4, 5, 6, 7, 8, 11))


class _Writer(NamedTuple):
    """A process with the write end. `quiet`: it has never written, and nothing outside wakes it. `stray`: why it got the end.

    `stray` is empty where the process may have it on purpose.
    """

    use: ProcessUse
    quiet: bool
    stray: str


def starved(facts: Facts, blocks: Blocks, uses: Mapping[bytes, Sequence[ProcessUse]]) -> dict[bytes, Finding]:
    """A finding for each empty pipe that only quiet or stray processes could write to.

    It is a warning where each of them is both: then neither data nor the end of file comes by itself.
    """
    found = {}
    for key in dict.fromkeys(wait.on for wait in blocks.reading):
        readers = {wait.pid for wait in blocks.reading if wait.on == key}
        finding = _of_pipe(facts, blocks, key, readers, uses[key])
        if finding:
            found[key] = finding
    return found


def _of_pipe(facts: Facts, blocks: Blocks, key: bytes, readers: set[int], uses: Sequence[ProcessUse]) -> Finding | None:
    holders = [use for use in uses if use.write_fds]
    reading = [use for use in uses if use.process.pid in readers]
    itself = [use for use in holders if use.process.pid in readers]
    if itself and (len(holders) > 1 or not _starves_itself(blocks, itself[0], key)):
        return None
    others = [_writer(facts, blocks, key, use, readers) for use in holders if use not in itself]
    if not holders or not all(other.quiet or other.stray for other in others):
        return None
    waits = agreeing(len(reading), "waits", "wait")
    who = listed(list(dict.fromkeys(use.process.command for use in reading)), MOST_NAMES)
    summary = f"{who} {waits} for end of file, which cannot come while {_holding(others, itself)}"
    first = reading[0].process
    entity = Entity("process", first.pid, first.start_ticks)
    if itself:
        return Finding(
            "pipe-end-of-file-missing", "warning", entity, summary, "its only writer is itself, /proc/PID/task/TID/syscall",
            fix="close the write end in the reader before it reads", next=who_are([first.pid]),
        )  # fmt: skip
    is_proven = all(other.quiet and other.stray for other in others)
    pids = [other.use.process.pid for other in others]
    return Finding(
        "pipe-end-of-file-missing", "warning" if is_proven else "note", entity, summary, _evidence(others),
        fix=_fix(others) if is_proven else None, next=who_are(pids),
    )  # fmt: skip


def _holding(others: Sequence[_Writer], itself: Sequence[ProcessUse]) -> str:
    """`sleep[27823] holds the write end`."""
    if itself:
        return "it holds the write end itself"
    names = [f"{other.use.process.command}[{other.use.process.pid}]" for other in others]
    return f"{listed(names, MOST_NAMES)} {agreeing(len(names), 'holds', 'hold')} the write end"


def _writer(facts: Facts, blocks: Blocks, key: bytes, use: ProcessUse, readers: set[int]) -> _Writer:
    pid = use.process.pid
    past, waits = blocks.pasts.get(pid, Past()), blocks.waits.get(pid)
    quiet = bool(waits) and past.written_bytes == 0 and all(wait.call == "sleep" for wait in waits or ())
    families = [blocks.pasts.get(reader, Past()) for reader in readers]
    if any(pid in family.ancestors for family in families):
        return _Writer(use, quiet=quiet, stray="")  # it made the pipe for the reader
    stray = ""
    if past.is_adopted and not all(family.is_adopted for family in families):
        stray = "the process that started it has ended"
    elif not readers & past.ancestors and (fd := _leaked_fd(facts, key, pid)) is not None:
        stray = f"it inherited it as fd {fd}"
    return _Writer(use, quiet=quiet, stray=stray)


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
    parts = []
    if all(other.quiet for other in others):
        parts.append(
            f"{agreeing(len(others), 'it has', 'they have')} written nothing so far and {agreeing(len(others), 'sleeps', 'sleep')}"
        )
    parts += dict.fromkeys(other.stray for other in others if other.stray)
    return "; ".join(parts)


def _fix(others: Sequence[_Writer]) -> str:
    """How to end the wait now, and how to avoid it."""
    now = f"{shell.command('kill', *[other.use.process.pid for other in others[:MOST_NAMES]])} ends the wait"
    fds = [other.stray.rpartition(" ")[2] for other in others if " as fd " in other.stray]
    later = f"start it with {fds[0]}>&-" if fds else "start it with its output redirected (> FILE 2>&1)"
    return f"{now}; to avoid it, {later}"
