"""A crash report without secrets."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from opskit.redact import redact_environment, redact_line, redact_text

if TYPE_CHECKING:
    from opskit.jvm.logs.crashes.record import CrashReport

_known = lru_cache(maxsize=8192)(redact_text)  # the reports of one application have most texts in common
_LONGEST_KNOWN = 300


def redact_report(report: CrashReport) -> CrashReport:
    """The same report; values of secrets in its command line, environment and every other text are replaced by `…`."""
    event = report.event
    arguments, command = _line(report.jvm_arguments), _line(report.java_command)
    redacted: CrashReport = _redacted(
        report._replace(environment={}, command_line=None, jvm_arguments=None, java_command=None)
    )
    return redacted._replace(
        event=redacted.event._replace(name=redact_line(event.name), message=tuple(map(redact_line, event.message))),
        thread=report.thread and redacted.thread and redacted.thread._replace(name=_line(report.thread.name)),
        last_events=tuple(map(redact_line, report.last_events)),
        command_line=_command_line(report, command),
        jvm_arguments=arguments,
        java_command=command,
        environment=redact_environment(report.environment),
    )


def _redacted(value: Any) -> Any:
    """A record, list or mapping with every text in it redacted: also paths, which an application may name."""
    if isinstance(value, str):
        return _known(value) if len(value) <= _LONGEST_KNOWN else redact_text(value)
    if isinstance(value, dict):
        return {key: _redacted(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        found = map(_redacted, value)
        return type(value)(*found) if hasattr(value, "_fields") else type(value)(found)
    return value


def _line(text: str | None) -> str | None:
    return None if text is None else redact_line(text)


def _command_line(report: CrashReport, command: str | None) -> str | None:
    """The options and the command, each redacted by itself: a secret with blanks in an option ends before the main class."""
    line = report.command_line
    if line is None or not report.java_command or command is None:
        return _line(line)
    options, found, rest = line.rpartition(report.java_command)
    if not found or rest.strip() or not options.endswith(" "):
        return _line(line)
    return f"{redact_line(options.rstrip())} {command}"
