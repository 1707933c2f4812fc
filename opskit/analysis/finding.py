"""What a check found: one kind of record everywhere. Each code has its paragraph in docs/findings.md."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]
_ORDER: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """One deviation. `code` is stable and greppable (`attach-socket-group`); `fix` is a command or a line to write.

    `subject` is what it is about (a pid, a path, a cgroup); `summary` one sentence; `evidence` what was read, and where.
    A `note` is something that somebody meant: it never makes a check fail.
    """

    code: str
    severity: Severity
    subject: str
    summary: str
    evidence: str
    fix: str | None = None

    def to_object(self) -> dict[str, Any]:
        """The finding for JSON."""
        return asdict(self)


def most_severe_first(findings: list[Finding]) -> list[Finding]:
    """Errors, then warnings, then notes; within each in the order they were found."""
    return sorted(findings, key=lambda finding: _ORDER.index(finding.severity))


def is_failure(findings: list[Finding]) -> bool:
    """Whether a check has found something (exit code 1): anything but notes."""
    return any(finding.severity != "note" for finding in findings)
