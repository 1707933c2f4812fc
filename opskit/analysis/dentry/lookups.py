"""Which processes look up files that do not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.quantities import percent
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Looker(NamedTuple):
    """A process that looks up absent files, or all ended processes of one command (`pid` None).

    `ended`: it has ended; a busy one keeps its own row and PID. `share` is of all failed lookups, 0 to 1.
    `lookups` is an estimate where not every event was read (`Lookups.complete`). `calls`: system call -> lookups.
    `paths`: examples of what it looks up, read from its memory; empty where they could not be read.
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

    `events`: their source, "perf" or the event group of a tracing instance.
    `interrupted`: Ctrl-C, SIGTERM or SIGHUP ended the trace early.
    """

    seconds: float
    total: int
    counted: int
    events: str
    interrupted: bool
    lookers: tuple[Looker, ...]

    @property
    def complete(self) -> bool:
        """Whether every failed lookup was read."""
        return self.counted >= self.total


def verdict(seen: Lookups, grown: int | None) -> list[str]:
    """Who looks up absent files, for which names, and the command that shows all of them.

    `grown`: by how much the number of negative dentries grew meanwhile.
    """
    if not seen.lookers:
        return [
            f"No lookup failed in {seen.seconds:.1f} s: the program that made the negative entries is idle now; "
            "trace longer, or while it runs: opskit dentry --culprit 60s"
        ]
    first = seen.lookers[0]
    which = f"{first.processes:,} processes, ended" if first.pid is None else f"{first.pid}{', ended' * first.ended}"
    grew = (
        "" if grown is None else f"; negative entries {'grew' if grown >= 0 else 'shrank'} by {abs(grown):,} meanwhile"
    )
    lines = [
        f"{first.command} ({which}) made {percent(first.share)} of the {seen.total:,} failed lookups in "
        f"{seen.seconds:.1f} s: {first.per_s:,.0f} a second{grew}."
    ]
    if first.paths:
        lines.append(f"It looks for names like {', '.join(first.paths)}")
    if not first.ended:
        lines.append(f"See all paths: {shell.command('strace', '-f', '-Z', '-e', 'trace=%file', '-p', first.pid)}")
    return lines
