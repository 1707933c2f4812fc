"""A crash report without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.redact import redact_environment, redact_line, redact_text

if TYPE_CHECKING:
    from opskit.jvm.logs.crashes.record import CrashReport


def redact_report(report: CrashReport) -> CrashReport:
    """The same report; values of secrets in its command line, environment, messages and events are replaced by `…`."""
    event = report.event
    arguments, command = _line(report.jvm_arguments), _line(report.java_command)
    return report._replace(
        event=event._replace(name=redact_text(event.name), message=tuple(map(redact_text, event.message))),
        thread=report.thread and report.thread._replace(name=report.thread.name and redact_text(report.thread.name)),
        memory_at_address=report.memory_at_address and redact_text(report.memory_at_address),
        last_events=tuple(map(redact_text, report.last_events)),
        command_line=_command_line(report, command),
        jvm_arguments=arguments,
        java_command=command,
        environment=redact_environment(report.environment),
    )


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
