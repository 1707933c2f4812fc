"""Doctor's answer: problems in the order of their harm, each with what it causes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.analysis.doctor.seen import Seen
    from opskit.analysis.finding import Finding, Severity

CLASSES = ("stuck", "slow", "soon", "tools", "tidy")  # the most harmful first


class Effect(NamedTuple):
    """A symptom: the finding that a cause explains, and how many more of its code are explained by the same cause: `others`."""

    finding: Finding
    more: int = 0
    others: tuple[Finding, ...] = ()


class Problem(NamedTuple):
    """A cause, or a finding without one. `others`: findings of the same code that are not listed on their own.

    `class_` and `severity`: the worst of the cause and its effects, by which problems are ranked.
    """

    finding: Finding
    effects: tuple[Effect, ...] = ()
    others: tuple[Finding, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them: the cause, those that are not listed on their own, and the effects in their order."""
        of_effects = (finding for effect in self.effects for finding in (effect.finding, *effect.others))
        return (self.finding, *self.others, *of_effects)

    @property
    def class_(self) -> str:
        """stuck, slow, soon or tools."""
        return min((each.class_ for each in self.findings), key=CLASSES.index)

    @property
    def severity(self) -> Severity:
        """Error or warning."""
        return "error" if any(each.severity == "error" for each in self.findings) else "warning"


class Collapsed(NamedTuple):
    """Findings that are counted alone: of one code of class tidy, or all other notes (code `note`). `words`: `34 stale attach sockets`."""

    code: str
    words: str
    findings: tuple[Finding, ...]


class Result(NamedTuple):
    """The answer. `problems`: errors and warnings, the most harmful first. `collapsed`: all else. `causes`: of each effect, the nearest."""

    seen: Seen
    problems: tuple[Problem, ...]
    collapsed: tuple[Collapsed, ...]
    causes: Mapping[Finding, Finding] = {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every finding once, in the order of the answer."""
        shown = [finding for problem in self.problems for finding in problem.findings]
        return (*shown, *(finding for each in self.collapsed for finding in each.findings))
