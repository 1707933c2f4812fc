"""The order of findings: class, severity, measured share, then code and entity. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.places import chain
from opskit.analysis.doctor.result import CLASSES

if TYPE_CHECKING:
    from opskit.analysis.finding import Finding

_SEVERITIES = ("error", "warning", "note")
Rank = tuple[int, int, float, str, tuple[tuple[str, str, int], ...], tuple[str, ...]]


def rank(finding: Finding) -> Rank:
    """Its place among others, which no two different findings share."""
    entity = tuple((each.kind, f"{each.id!s:>12}", each.start_ticks or 0) for each in chain(finding.entity))
    rest = (
        finding.summary,
        finding.evidence,
        finding.fix or "",
        finding.next or "",
        f"{finding.share} {finding.window_s} {finding.waits_for}",
    )
    return (
        CLASSES.index(finding.class_), _SEVERITIES.index(finding.severity), -(finding.share or 0.0), finding.code,
        entity, rest,
    )  # fmt: skip
