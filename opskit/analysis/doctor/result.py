"""Doctor's answer: problems in the order of their harm, each with what it causes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.analysis.doctor.seen import Seen
    from opskit.analysis.finding import Finding


class Effect(NamedTuple):
    """A symptom: the finding that a cause explains, and how many more of its code are explained by the same cause."""

    finding: Finding
    more: int = 0


class Problem(NamedTuple):
    """A cause, or a finding without one. `others`: findings of the same code that are not listed on their own."""

    finding: Finding
    effects: tuple[Effect, ...] = ()
    others: tuple[Finding, ...] = ()


class Collapsed(NamedTuple):
    """Findings of one code that are counted alone: of class tidy, or notes. `words`: `34 stale attach sockets`."""

    code: str
    words: str
    findings: tuple[Finding, ...]


class Result(NamedTuple):
    """The answer. `problems`: errors and warnings, the most harmful first. `collapsed`: all else."""

    seen: Seen
    problems: tuple[Problem, ...]
    collapsed: tuple[Collapsed, ...]
