"""What a check found: one kind of record in every command. Codes are in catalog.FINDINGS and docs/findings.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Optional, Union

from opskit import catalog
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Severity = Literal["error", "warning", "note"]
Kind = Literal["host", "cgroup", "process", "thread", "pipe", "file", "socket", "lock", "pool", "user", "device"]
_ORDER: tuple[Severity, ...] = ("error", "warning", "note")


class Entity(NamedTuple):
    """What a finding is about, by a pid, path, inode or name; `inside` another one: a thread in a process in a cgroup."""

    kind: Kind
    id: Union[int, str, None] = None  # noqa: UP007  (evaluated by typing on Python 3.9)
    start_ticks: Optional[int] = None  # noqa: UP045
    inside: Optional[Entity] = None  # noqa: UP045

    @property
    def name(self) -> str:
        """The id as text; `host` for the host."""
        return self.kind if self.id is None else str(self.id)


HOST = Entity("host")


def device_entity(chain: Sequence[str]) -> Entity:
    """A device inside of what it is on: `dm-0`, `sda2`, `sda`. Without any: the host."""
    entity = HOST
    for name in reversed(chain):
        entity = Entity("device", name, inside=entity)
    return entity


class Finding(NamedTuple):
    """One deviation. A `note` is intended or harmless: it never makes a command fail."""

    code: str
    severity: Severity
    entity: Entity
    summary: str  # a sentence
    evidence: str  # what was read, and where
    fix: str | None = None  # a command line of opskit.shell: the repair
    next: str | None = None  # another one: the closer look
    share: float | None = None  # 0 to 1, of the window, of a limit or of a total
    window_s: float | None = None
    waits_for: Entity | None = None  # the other process that should act: the reader of a pipe or socket

    @property
    def class_(self) -> str:
        """stuck, slow, soon, tools or tidy."""
        return catalog.FINDINGS[self.code][0]


def most_severe_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then notes; within each in the order they were found."""
    return sorted(findings, key=lambda finding: _ORDER.index(finding.severity))


def is_failure(findings: Sequence[Finding]) -> bool:
    """Whether an error or a warning was found: exit code 1."""
    return any(finding.severity != "note" for finding in findings)
