"""A crash report without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opskit.jvm.logs.crashes.record import CrashReport


def redact_report(report: CrashReport) -> CrashReport:
    """The same report; values of secrets in its command line, environment, messages and events are replaced by `…`."""
    raise NotImplementedError
