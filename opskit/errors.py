"""Errors, classed by what the user can do about them: an OpskitError ends the command with exit code 2, any other with 70.

A message names the path, the actual value and the next thing to type. It may contain names from the machine: the
caller that prints it escapes it.
"""

from __future__ import annotations


class BugInChild(Exception):
    """An unexpected exception in a child process, as `where_raised` describes it. Exit code 70, as for every bug."""


def raised_at(error: BaseException) -> str:
    """Where in opskit an exception was raised: `proc/x.py:12`; empty where no line of opskit is known."""
    package = f"{__file__.rpartition('/')[0]}/"
    place, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name.startswith(package):
            place = f"{name[len(package) :]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def where_raised(error: BaseException) -> str:
    """Describe an unexpected exception: `TypeError: no number at opskit/proc/x.py:12`. The caller escapes the text."""
    said, place = str(error), raised_at(error)
    return f"{type(error).__name__}{': ' * bool(said)}{said[:300]}{f' at opskit/{place}' if place else ''}"


class OpskitError(Exception):
    """Base class: the command ends with this one line, then `lines`, and exit code 2."""

    lines: tuple[str, ...] = ()


class UsageError(OpskitError):
    """Invalid usage."""


class NotPermitted(OpskitError):
    """Permission denied by the kernel or a JVM; the message names a command that would be allowed."""


class NoSuchProcess(OpskitError):
    """No process has this PID. `hint`: how to find the right one, or what happened to it."""

    def __init__(self, pid: int, hint: str = "") -> None:
        self.pid = pid
        super().__init__(f"no process {pid}{': ' + hint if hint else ''}")


class NotAJvm(OpskitError):
    """The process is not a HotSpot JVM; the message says what it is instead, if that is known."""


class BadInput(OpskitError):
    """Invalid input: `source:line: problem: found`. `line` counts from 1; None: the whole source."""

    def __init__(self, source: str, problem: str, line: int | None = None, found: str | None = None) -> None:
        self.source, self.problem, self.line, self.found = source, problem, line, found
        place = source if line is None else f"{source}:{line}"
        super().__init__(f"{place}: {problem}" + ("" if found is None else f": {found[:120]!r}"))


class NothingFound(BadInput):
    """The source contains nothing of what was searched for: `no thread dump in app.log: 812 lines read`."""

    def __init__(self, what: str, source: str, lines: int) -> None:
        super().__init__(f"no {what} in {source}", f"{lines} line{'s' * (lines != 1)} read")


class CannotWrite(OpskitError):
    """An output file could not be written."""


class NotSupported(OpskitError):
    """This kernel, tree or machine lacks what the command needs."""


class NoMoreSamples(NotSupported):
    """A capture has no later sample: what needs one more, such as a rate, ends here."""


class TargetTimeout(OpskitError):
    """Another process did not respond in time."""


# reason -> what failed: why; what to do. `who` is the JVM, the other names are the facts that AttachError is given.
ATTACH_REASONS = {
    "other-user": "cannot attach to {who}: it runs as uid {uid}, and only that user and root may attach; {advice}",
    "not-hotspot": "cannot attach to {who}: it is {kind}; {advice}",
    "disabled": "cannot attach to {who}: it was started with -XX:+DisableAttachMechanism; start it without that option",
    "stopped": "cannot attach to {who}: it {why}; {advice}",
    "no-fds": "cannot attach to {who}: {what}",
    "no-listener": "cannot attach to {who}: its attach listener does not run. No signal was sent",
    "needs-restart": "cannot attach to {who}: its listener {what}, and {java} does not make it again: only a restart of "
    "the JVM helps. No signal was sent",
    "no-trigger": "cannot start the attach listener of {who}: {why}. No signal was sent; {advice}",
    "tmp": "cannot use /tmp of {who}: {why}; {advice}",
    "no-signal-handler": "cannot start the attach listener of {who}: {why}. No signal was sent",
    "socket-insecure": "cannot attach to {who}: {path} is {kind} of uid {uid} instead of its socket. Nothing was sent; "
    "find out who made it, remove it, and try again",
    "socket-orphaned": "cannot attach to {who}: no process listens on {path}, which has replaced the socket of its listener. "
    "No signal was sent; {advice}",
    "socket-foreign": "cannot attach to {who}: {path} belongs to {other}. Two JVMs with the same PID in their containers "
    "share this /tmp, and the later one took the name. Nothing was sent; give each container its own /tmp",
    "denied": "cannot attach to {who}: permission denied for {what}; {advice}",
    "credentials-refused": "cannot attach to {who}: it closed the connection without an answer: {why}; {advice}",
    "reply-cut": "the reply of {who} is incomplete: {what}; if the JVM still runs, try again",
    "reply-too-large": "cannot use the reply of {who}: {what}; {advice}",
    "protocol": "cannot attach to {who}: {what}",
    "command-failed": "{who} refused {command!r} (code {code}): {said}",
    "timeout": "timeout: {who}: no {waited_for} within {seconds:g} s; {meanwhile}",
    "failed": "cannot attach to {who}: interrupted",
}


class AttachError(OpskitError):
    """A JVM could not be reached. `reason` is stable and shown in JSON; `facts` are the values in its message."""

    def __init__(self, reason: str, who: object, **facts: object) -> None:
        self.reason, self.facts = reason, facts
        super().__init__(ATTACH_REASONS[reason].format(who=who, **facts))
