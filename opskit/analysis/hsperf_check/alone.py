"""The findings as sentences that stand alone: each names its process or file. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.hsperf_check.repairs import NOT_REPAIRED

if TYPE_CHECKING:
    from opskit.analysis.finding import Finding
    from opskit.analysis.hsperf_check.judge import Result

_LONGEST = 120


def alone(result: Result) -> list[Finding]:
    """The findings; what is too long for a line goes to the evidence."""
    mains = {each.around.pid: each.around.jvm.main for each in result.checked}
    private = {each.around.tmp.entry.path for each in result.checked if each.around.tmp and not each.around.tmp.shared}
    return [_weighed(_alone(finding, mains), private) for finding in result.findings]


def _weighed(finding: Finding, private: set[str]) -> Finding:
    """A /tmp of one container's own is often a volume without the sticky bit, in which nobody else can delete anything."""
    is_harmless = finding.code == "tmp-not-sticky" and finding.entity.id in private
    return finding._replace(severity="note") if is_harmless else finding


def _alone(finding: Finding, mains: dict[int, str]) -> Finding:
    entity, summary = finding.entity, finding.summary
    name = entity.name
    if entity.kind == "process" and isinstance(entity.id, int):
        name = f"{entity.id} ({mains.get(entity.id, '?')})"
        summary = summary.removeprefix(f"{entity.id} ")
    elif entity.inside is not None and isinstance(entity.inside.id, int):
        of = "" if entity.name in summary else f"{entity.name} of "
        name = f"{of}{entity.inside.id} ({mains.get(entity.inside.id, '?')})"
    is_sentence = entity.kind == "process" and summary != finding.summary
    summary = f"{name}{' ' if is_sentence else ': '}{summary}"
    if finding.fix is not None and finding.fix.startswith(NOT_REPAIRED):  # it is no command
        finding = finding._replace(fix=None, evidence=f"{finding.evidence}; {finding.fix}")
    if len(summary) <= _LONGEST:
        return finding._replace(summary=summary)
    for mark in ("; ", ": "):
        head, _, rest = summary[len(name) + 2 :].partition(mark)
        if rest:
            return finding._replace(summary=summary[: len(name) + 2] + head, evidence=f"{rest}; {finding.evidence}")
    return finding._replace(summary=summary)
