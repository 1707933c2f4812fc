"""Which file systems are full, of what deleted files, and how to get the space back. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.fds.result import DeletedResult
from opskit.analysis.file_space import entity_of as _entity
from opskit.analysis.file_space import fullness, is_full
from opskit.analysis.finding import HOST, Entity, Finding, most_severe_first
from opskit.quantities import listed, percent, plural, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.finding import Severity
    from opskit.collect.fds.facts import DeletedFacts, DeletedFile, DeletedHolder, FileSystem

_SHORT_SHARE = 0.05  # free
_LARGE_SHARE, _LARGE_BYTES = 0.05, 16 << 20  # in deleted files: from here on they are a finding
_MOST_NAMED = 2


def judge_deleted(facts: DeletedFacts) -> DeletedResult:
    """Judge one look."""
    findings = [
        *(found for system in facts.systems for found in (*fullness(system), *_deleted(system))),
        *_left_behind(facts),
    ]
    return DeletedResult(facts, tuple(most_severe_first(findings)))


def judge_full(facts: DeletedFacts) -> list[Finding]:
    """What deleted files take of file systems that are short of space, the advice as the fix."""
    return [
        found._replace(
            fix=found.fix or advice(system.files[0]),
            next=shell.command("opskit", "fds", system.files[0].holders[0].process.pid, "--deleted"),
        )
        for system in facts.systems
        for found in _deleted(system, advised=False)
        if found.severity != "note"
    ]


def _deleted(system: FileSystem, *, advised: bool = True) -> Iterator[Finding]:
    held = sum(file.bytes or 0 for file in system.files)
    share = held / system.size_bytes if system.size_bytes else None
    if held < _LARGE_BYTES and (share is None or share < _LARGE_SHARE):
        return
    largest = system.files[0]
    holder = largest.holders[0]
    where = f" of {system.mount}" if system.mount else ""
    yield Finding(
        "deleted-files-held", _severity(system, held), _entity(system),
        f"{size(held)}{where} {'is' if len(system.files) == 1 else 'are'} deleted but held"
        f"{f' ({percent(share)} of it)' if share is not None and share >= _LARGE_SHARE else ''}: "
        f"{listed([_held_by(file) for file in system.files if file.bytes != 0], _MOST_NAMED, '; ')}"
        f"{f'. {advice(largest)}' if advised else ''}",
        "blocks of files without a name (stat), /proc/PID/fd, /proc/PID/maps", fix=restart(holder),
        next=shell.command("opskit", "fds", holder.process.pid), share=share,
    )  # fmt: skip


def _severity(system: FileSystem, held: int) -> Severity:
    """A warning where space is short, and the deleted files are why."""
    if not system.size_bytes or system.free_bytes is None:
        return "note"
    is_short = is_full(system) or system.free_bytes < system.size_bytes * _SHORT_SHARE
    is_why = held >= system.size_bytes * _LARGE_SHARE or held >= max(system.free_bytes, _LARGE_BYTES)
    return "warning" if is_short and is_why else "note"


def _held_by(file: DeletedFile) -> str:
    """`8709 (python3) and 3 other processes 200 MiB fd 3 /var/log/x`."""
    holder = file.holders[0]
    others = len(file.holders) - 1
    more = f" and {plural(others, 'other process', 'other processes')}" if others else ""
    how = f"fd {listed([str(fd) for fd in holder.fds], 3)}" if holder.fds else "mapped"
    return f"{holder.process.pid} ({holder.process.command}){more} {size(file.bytes)} {how} {file.path}"


def advice(file: DeletedFile) -> str:
    """What gives the space of a file back: a sentence or two."""
    holder = file.holders[0]
    named = f"{holder.process.command} ({holder.process.pid})" + (f" in {holder.unit}" if holder.unit else "")
    if len(file.holders) > 1:
        named += " and the others that hold it"
    first = f"Restart {named}, or have it open its log again (log rotation)" if holder.fds else f"Restart {named}"
    command = truncate(file)
    return f"{first}; or empty the file, whose content is lost then: {command}" if command else first


def truncate(file: DeletedFile) -> str | None:
    """The command that empties a file through a holder's fd; None where that may leave a hole, or harm a reader.

    Only a writer with O_APPEND goes on at the new end, and only one with O_WRONLY does not read what is lost.
    """
    is_only_written = all(not holder.mapped and holder.appending_fd is not None for holder in file.holders)
    if not file.is_regular or not file.holders or not is_only_written:
        return None
    holder = file.holders[0]
    return shell.command("truncate", "-s", 0, f"/proc/{holder.process.pid}/fd/{holder.appending_fd}")


def restart(holder: DeletedHolder) -> str | None:
    """The command for a holder in a systemd service of this machine."""
    unit = holder.unit
    is_service = unit is not None and unit.endswith(".service") and ":" not in unit and not unit.startswith("user@")
    return shell.command("systemctl", "restart", *shell.operands(unit)) if is_service else None


def _left_behind(facts: DeletedFacts) -> Iterator[Finding]:
    """As `opskit mem --files` has it, without a look at how much memory is free: a note."""
    amount = sum(one.bytes for one in facts.unattached)
    if amount >= _LARGE_BYTES:
        first = facts.unattached[0]
        names = [
            f"{size(one.bytes)} in {'System V segment ' if one.kind == 'sysv' else ''}{one.name}"
            for one in facts.unattached
        ]
        yield Finding(
            "shared-memory-unheld", "note", Entity("file", first.name, inside=HOST),
            f"no process holds {size(amount)} of shared memory ({listed(names, _MOST_NAMED)}): "
            "a process that ended has left it, or one keeps data there",
            "nobody has it mapped or open (/proc/PID/maps, /proc/PID/fd)", fix=first.remove,
        )  # fmt: skip
