"""Rank what was seen. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.result import Collapsed, Problem, Result
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.analysis.doctor.seen import Seen

_CLASSES = ("stuck", "slow", "soon", "tools", "tidy")


def judge(seen: Seen) -> Result:
    """The answer."""
    found = [finding for each in seen.checked for finding in each.outcome.findings]
    harm = sorted(
        (each for each in found if each.severity != "note"),
        key=lambda each: (_CLASSES.index(each.class_), each.severity, -(each.share or 0)),
    )
    notes = tuple(each for each in found if each.severity == "note")
    return Result(
        seen,
        tuple(Problem(each) for each in harm),
        (Collapsed("note", plural(len(notes), "note"), notes),) if notes else (),
    )
