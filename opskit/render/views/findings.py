"""How findings are shown, the same in every command: a sentence each, then the commands to type; keys for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.render.fields import ID, NUMBER, SHARE, TEXT, Field, Kind, record, to_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opskit.analysis.finding import Entity, Finding

_NO_OBJECT = {"type": "object"}  # an entity around another one has the same keys
ENTITY: Sequence[Field[Entity]] = (
    Field("kind"),
    Field("id", Kind({"type": "string"}), value=lambda entity: None if entity.id is None else str(entity.id)),
    Field("start_ticks", ID),
    Field("inside", Kind(_NO_OBJECT, dump=lambda entity: to_object(ENTITY, entity))),
)
FINDING: Sequence[Field[Finding]] = (
    Field("code", TEXT, "code"),
    Field("severity", TEXT, "severity"),
    Field("class", value=lambda finding: finding.class_, help="stuck, slow, soon, tools or tidy"),
    Field("subject", TEXT, "subject", lambda finding: finding.entity.name, help="the entity's id as text"),
    Field("entity", record(ENTITY)),
    Field("summary", TEXT, "finding"),
    Field("evidence", help="what was read, and where"),
    Field("fix", TEXT, "fix", help="a command line, or a line to write"),
    Field("next", help="the command line for a closer look"),
    Field("share", SHARE, help="0 to 1, of window_s, of a limit or of a total"),
    Field("window_s", NUMBER, help="seconds that were looked at"),
)


def finding_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """`warning CODE (SUBJECT): summary (evidence)`, then a line for the fix and one for the closer look."""
    for finding in findings:
        evidence = f" ({finding.evidence})" if finding.evidence else ""
        yield f"{finding.severity} {finding.code} ({finding.entity.name}): {finding.summary}{evidence}"
        if finding.fix:
            yield f"  fix: {finding.fix}"
        if finding.next:
            yield f"  next: {finding.next}"
