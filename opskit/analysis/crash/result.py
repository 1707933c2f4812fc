"""Why each JVM died: who is blamed, by what evidence, and the pattern that it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.finding import Finding
    from opskit.collect.crash.facts import Facts, Read
    from opskit.jvm.logs.crashes.record import Frame


class Verdict(NamedTuple):
    """`blamed`: a phrase ("native library libfoo.so", "the C2 compiler, compiling com.acme.Order.total").

    `cause`: a sentence. `application`: the nearest frame of the application. `pattern`: the finding's code.
    `alike`: equal for reports with the same cause. `next`: the command for a closer look.
    """

    read: Read
    blamed: str
    cause: str
    meaning: str | None  # of the signal and its code
    application: Frame | None
    pattern: str | None
    alike: str = ""
    evidence: Sequence[str] = ()
    fix: str | None = None
    next: str | None = None


class Group(NamedTuple):
    """Reports with the same cause; `first`: the newest."""

    first: Verdict
    verdicts: Sequence[Verdict]


class Result(NamedTuple):
    """A verdict a report; groups of the same cause, the most frequent first."""

    facts: Facts
    verdicts: Sequence[Verdict]
    findings: list[Finding]
    groups: Sequence[Group] = ()
