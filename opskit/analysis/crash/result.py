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
    """

    read: Read
    blamed: str
    cause: str
    meaning: str | None  # of the signal and its code
    application: Frame | None
    pattern: str | None


class Result(NamedTuple):
    """A verdict a report."""

    facts: Facts
    verdicts: Sequence[Verdict]
    findings: list[Finding]
