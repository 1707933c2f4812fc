"""One finding for each code and entity, of those that several checks report. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.order import rank
from opskit.analysis.doctor.places import chain, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.analysis.doctor.places import Key
    from opskit.analysis.finding import Entity, Finding


def merge(findings: Iterable[Finding]) -> list[Finding]:
    """In their order. Of those with the same code and entity the one with more evidence, with what only the others know."""
    alike: dict[tuple[str, Key], list[Finding]] = {}
    for finding in findings:
        if finding.class_ == "tidy":
            finding = finding._replace(severity="note")
        alike.setdefault((finding.code, key_of(finding.entity)), []).append(finding)
    return sorted((_merged(each) for each in alike.values()), key=rank)


def _merged(findings: Sequence[Finding]) -> Finding:
    best, *others = sorted(findings, key=lambda each: (_lacks(each), rank(each)))
    for other in others:
        best = best._replace(
            fix=best.fix or other.fix,
            next=best.next or other.next,
            share=other.share if best.share is None else best.share,
        )
    return best._replace(entity=max((each.entity for each in [best, *others]), key=_known))


def _lacks(finding: Finding) -> tuple[int, bool, bool, int]:
    """Less is better: the most severe one, then one with a measured share of a window, then the longer evidence."""
    severity = ("error", "warning", "note").index(finding.severity)
    return severity, finding.share is None, finding.window_s is None, -len(finding.evidence)


def _known(entity: Entity) -> tuple[bool, int]:
    """How much a finding knows of its entity: its start time, and what it is inside of. Of equals the first counts."""
    return entity.start_ticks is not None, len([*chain(entity)])
