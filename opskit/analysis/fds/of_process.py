"""What one process holds of the deleted files of the machine. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.collect.fds.facts import DeletedFacts, DeletedFile, DeletedHolder


def held_by(facts: DeletedFacts, pid: int) -> DeletedFacts:
    """The files of this process alone, itself as their first holder; what nobody holds is left out."""
    systems = [system._replace(files=_files(system.files, pid)) for system in facts.systems]
    return facts._replace(
        systems=tuple(system for system in systems if system.files),
        memory=_files(facts.memory, pid),
        unattached=(),
        in_flight=tuple(each for each in facts.in_flight if each[0] == pid),
        of_pid=pid,
    )


def _files(files: Iterable[DeletedFile], pid: int) -> tuple[DeletedFile, ...]:
    held = (file for file in files if any(holder.process.pid == pid for holder in file.holders))
    return tuple(file._replace(holders=_first(file.holders, pid)) for file in held)


def _first(holders: Iterable[DeletedHolder], pid: int) -> tuple[DeletedHolder, ...]:
    return tuple(sorted(holders, key=lambda holder: holder.process.pid != pid))
