"""One finding of those that several checks report with the same code about the same entity. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.order import rank
from opskit.analysis.doctor.places import chain, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opskit.analysis.doctor.places import Key
    from opskit.analysis.finding import Entity, Finding


def merge(by_check: Iterable[Iterable[Finding]]) -> list[Finding]:
    """In their order: of what several checks say with the same code about the same entity the one with more evidence.

    What the others know besides is added. One check that says several things of a code means several things.
    """
    alike: dict[tuple[str, Key], list[list[Finding]]] = {}
    for findings in by_check:
        own: dict[tuple[str, Key], list[Finding]] = {}
        for finding in sorted({*map(_as_note_if_tidy, findings)}, key=rank):
            own.setdefault((finding.code, key_of(finding.entity)), []).append(finding)
        for key, found in own.items():
            alike.setdefault(key, []).append(found)
    return sorted((finding for reports in alike.values() for finding in _merged(reports)), key=rank)


def _as_note_if_tidy(finding: Finding) -> Finding:
    return finding._replace(severity="note") if finding.class_ == "tidy" else finding


def _merged(reports: Sequence[Sequence[Finding]]) -> Iterator[Finding]:
    """The report with the most findings; the others are joined to the best of it."""
    if len(reports) == 1:
        yield from reports[0]
        return
    ordered = sorted(reports, key=lambda report: (-len(report), [(_lacks(each), rank(each)) for each in report]))
    most, *others = ordered
    first, *rest = sorted(most, key=_by_evidence)
    yield _joined(sorted([first, *(finding for report in others for finding in report)], key=_by_evidence))
    yield from rest


def _joined(findings: Sequence[Finding]) -> Finding:
    best, *others = findings
    for other in others:
        best = best._replace(
            fix=best.fix or other.fix,
            next=best.next or other.next,
            share=other.share if best.share is None else best.share,
            waits_for=best.waits_for or other.waits_for,
        )
    return best._replace(entity=max((each.entity for each in findings), key=_known))


def _by_evidence(finding: Finding) -> tuple[object, ...]:
    return _lacks(finding), rank(finding)


def _lacks(finding: Finding) -> tuple[int, bool, bool, int]:
    """Less is better: the most severe one, then one with a measured share of a window, then the longer evidence."""
    severity = ("error", "warning", "note").index(finding.severity)
    return severity, finding.share is None, finding.window_s is None, -len(finding.evidence)


def _known(entity: Entity) -> tuple[bool, int]:
    """How much a finding knows of its entity: its start time, and what it is inside of. Of equals the first counts."""
    return entity.start_ticks is not None, len([*chain(entity)])
