"""Judge pipes: which are open or full, and who keeps gaining them. Pure. What the plain list does not need is imported late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.pipes.ranking import ranked, total_fds
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.finding import Finding
    from opskit.analysis.pipes.growth import Gain
    from opskit.analysis.pipes.uses import OwnerUse, Pipe
    from opskit.collect.pipes import Facts


class Result(NamedTuple):
    """What a look says. `rows`: (fds, inode, key) of each pipe; `pipes`: all about them; None: not asked for, or no watch."""

    facts: Facts
    rows: list[tuple[int, int, bytes]]
    pipes: list[Pipe]
    owners: list[OwnerUse] | None
    gains: list[Gain] | None
    findings: list[Finding]

    @property
    def fifo_count(self) -> int:
        """Named FIFOs among the pipes."""
        return len(self.facts.scan.fifo_paths)

    @property
    def pipe_count(self) -> int:
        """Anonymous pipes."""
        return len(self.rows) - self.fifo_count

    @property
    def fd_count(self) -> int:
        """All fds on them."""
        return sum(fds for fds, _, _ in self.rows)


def judge(facts: Facts, sort: str = "fds") -> Result:
    """Rank the pipes by fds or inode, class their ends, and look for what is stuck or grows. Raises BadInput for `pipe:[x]`."""
    rows = ranked(total_fds(facts.scan.holders), sort)
    pipes, findings = _described(facts, rows) if facts.ask.processes else ([], [])
    gained = owner_uses = None
    if facts.samples:
        from opskit.analysis.finding import most_severe_first
        from opskit.analysis.pipes.growth import gains, keeps_growing

        gained = gains(facts.samples, facts.boot_s, facts.clock_ticks)
        growing = [keeps_growing(gain, facts.samples) for gain in gained if gain.is_steady]
        findings = most_severe_first([*growing, *findings])
    if facts.ask.owners:
        from opskit.analysis.pipes.uses import owners

        owner_uses = owners(pipes, facts.user_name, facts.soft_pages, facts.page_bytes)
    return Result(facts, rows, pipes, owner_uses, gained, findings)


def _described(facts: Facts, rows: Sequence[tuple[int, int, bytes]]) -> tuple[list[Pipe], list[Finding]]:
    from opskit.analysis.pipes.uses import pipe_of, uses_by_pipe

    uses = uses_by_pipe(facts.holders, facts.processes)
    verdicts: dict[bytes, str] = {}
    findings: list[Finding] = []
    if facts.blocks is not None:
        from opskit.analysis.finding import most_severe_first
        from opskit.analysis.pipes.openings import openings
        from opskit.analysis.pipes.starved import starved
        from opskit.analysis.pipes.stuck import full_pipes

        verdicts, findings = full_pipes(facts, facts.blocks, uses)
        empty = starved(facts, facts.blocks, uses)
        verdicts |= {key: finding.summary for key, finding in empty.items()}
        findings = most_severe_first([*openings(facts, facts.blocks), *findings, *dict.fromkeys(empty.values())])
    return [pipe_of(facts, row, uses[row[2]], verdicts.get(row[2])) for row in rows], findings
