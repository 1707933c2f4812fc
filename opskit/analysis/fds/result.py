"""What `opskit fds` concludes. None: unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.analysis.finding import Finding
    from opskit.collect.fds.facts import DeletedFacts, Facts, Group, HostFacts


class Growth(NamedTuple):
    """A group's fds (`group` None: all of the process) over a watch. `full_s`: until RLIMIT_NOFILE is reached at this pace."""

    group: Group | None
    first: int
    last: int
    per_min: float
    is_steady: bool
    full_s: float | None


class Result(NamedTuple):
    """One process. `growth`: the group that grows first or fastest at the front."""

    facts: Facts
    total: Growth | None
    growth: tuple[Growth, ...]
    findings: tuple[Finding, ...]


class HostResult(NamedTuple):
    """The machine."""

    facts: HostFacts
    findings: tuple[Finding, ...]


class DeletedResult(NamedTuple):
    """Deleted files."""

    facts: DeletedFacts
    findings: tuple[Finding, ...]
