"""Which processes look up files that do not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.quantities import percent
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Looker(NamedTuple):
    """A process that looks up absent files, or all ended processes of one command (`pid` None; a busy one keeps its row).

    `share`: of all failed lookups, 0 to 1. `lookups`: an estimate where not every event was read. `calls`: system call ->
    lookups. `paths`: examples, read from its memory; empty where they could not be read.
    """

    pid: int | None
    command: str
    user: str | None
    unit: str | None
    processes: int
    lookups: int
    per_s: float
    share: float
    calls: Mapping[str, int]
    paths: Sequence[str] = ()
    ended: bool = False


class Lookups(NamedTuple):
    """The failed lookups of the machine: `total` by the kernel's count, of which `counted` events were read.

    `events`: their source, "perf" or the event group of a tracing instance. `interrupted`: a signal ended the trace early.
    """

    seconds: float
    total: int
    counted: int
    events: str
    interrupted: bool
    lookers: tuple[Looker, ...]


def verdict(seen: Lookups, grown: int | None) -> list[str]:
    """Who looks up absent files, for which names, and what shows all of them. `grown`: by how many negative dentries."""
    if not seen.lookers:
        return [
            f"No lookup failed in {seen.seconds:.1f} s: the program that made the negative entries is idle now; "
            "trace longer, or while it runs: opskit dentry --culprit 60s"
        ]
    first = seen.lookers[0]
    which = f"{first.processes:,} processes, ended" if first.pid is None else f"{first.pid}{', ended' * first.ended}"
    how = "grew" if (grown or 0) >= 0 else "shrank"
    lines = [
        f"{first.command} ({which}) made {percent(first.share)} of the {seen.total:,} failed lookups in {seen.seconds:.1f} s: "
        f"{first.per_s:,.0f} a second{'' if grown is None else f'; negative entries {how} by {abs(grown):,} meanwhile'}."
    ]
    if first.paths:
        lines.append(f"It looks for names like {', '.join(first.paths)}")
    if not first.ended:
        lines.append(f"See all paths: {shell.command('strace', '-f', '-Z', '-e', 'trace=%file', '-p', first.pid)}")
    return lines
