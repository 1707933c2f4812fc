"""Which finding explains which, by the table of the catalog and by what contains what. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import catalog
from opskit.analysis.doctor.order import rank
from opskit.analysis.doctor.places import containers, key_of, scopes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.doctor.places import Key
    from opskit.analysis.doctor.seen import Place
    from opskit.analysis.finding import Finding


def explainers() -> dict[str, tuple[str, ...]]:
    """By code, the codes that can explain it."""
    found: dict[str, list[str]] = {}
    for code, (_, explains) in catalog.FINDINGS.items():
        for effect in explains:
            found.setdefault(effect, []).append(code)
    return {effect: tuple(codes) for effect, codes in found.items()}


def find_causes(findings: Sequence[Finding], places: Mapping[int, Place]) -> dict[Finding, Finding]:
    """The nearest cause of each finding that has one. The table has no cycle, so that causes have none. Notes are no causes."""
    by_place: dict[tuple[str, Key], list[Finding]] = {}
    for finding in findings:
        for scope in scopes(finding.entity):
            by_place.setdefault((finding.code, scope), []).append(finding)
    by_effect = explainers()
    causes = {}
    for effect in findings:
        codes = by_effect.get(effect.code, ())
        if not codes:
            continue
        for place in _around(effect, places):
            found = [cause for code in codes for cause in by_place.get((code, place), ())]
            if found:
                causes[effect] = _nearest(found)
                break
    return causes


def _around(effect: Finding, places: Mapping[int, Place]) -> Iterator[Key]:
    """Where its cause may be: around its entity; of what another process holds up, in that one."""
    if effect.code not in catalog.HELD_UP_BY_ANOTHER:
        yield from containers(effect.entity, places)
        return
    yield key_of(effect.entity)
    if effect.waits_for is not None:
        yield from containers(effect.waits_for, places)


def _nearest(causes: Sequence[Finding]) -> Finding:
    """Of several causes of one entity: one that explains no other of them, the most harmful first."""
    codes = {cause.code for cause in causes}
    last = [cause for cause in causes if codes.isdisjoint(catalog.FINDINGS[cause.code][1])]
    return min(last or causes, key=rank)


def root_of(finding: Finding, causes: Mapping[Finding, Finding]) -> tuple[Finding, int]:
    """The first cause in the chain, and how many findings are between: 0 for one without a cause."""
    depth = 0
    while finding in causes:
        finding, depth = causes[finding], depth + 1
    return finding, depth
