"""What can go wrong, classed by what the user can do about it.

    OpskitError                 exit code 2, one line on stderr
    ├── UsageError              the words of the command were off
    ├── NotPermitted            what was refused, to whom, and the command that would be allowed
    ├── NoSuchProcess           the pid is not there
    ├── NotAJvm                 the process is there, and is no HotSpot JVM
    ├── BadInput                source:line: problem, with the text that was found there
    │   └── NothingFound        the source was read to its end and holds none of what was looked for
    ├── CannotWrite             the output could not be written; nothing half-written stays
    ├── NotSupported            this kernel, tree or machine has not got what the command needs
    ├── TargetTimeout           what was waited for, how long, what the target was doing meanwhile
    └── AttachError             a JVM could not be asked; each way to fail has its own class and its own advice
        ├── AttachOtherUser     it is another user's (also a NotPermitted)
        ├── AttachNotHotSpot    OpenJ9 or a native image: another protocol, or none (also a NotAJvm)
        ├── AttachDisabled      it was started so that nobody can attach
        ├── AttachStopped       it is stopped by a signal, or frozen
        ├── AttachNeedsRestart  its listener cannot come back before a restart
        ├── AttachTrigger       the file that makes it listen could not be made; no signal was sent
        ├── AttachTmp           its /tmp cannot hold the socket: read-only, or not to be written to
        ├── AttachNoSignal      SIGQUIT was not sent: it would have killed, or not been caught
        ├── AttachSocket        what is at the socket's path is not its listener
        │   ├── AttachSocketInsecure   no socket at all: a file, a link, …
        │   ├── AttachSocketOrphaned   a socket that nobody listens on
        │   └── AttachSocketForeign    another process listens there
        ├── AttachDenied        the kernel refused although the modes allow it (also a NotPermitted)
        ├── AttachRefused       the JVM closed without a word: it does not take our credentials (also a NotPermitted)
        ├── AttachReplyCut      the reply ended too early
        ├── AttachReplyTooLarge the reply is larger than any that a JVM gives
        ├── AttachProtocol      what answered does not speak the protocol
        ├── AttachCommandFailed the JVM itself said no; its words
        └── AttachTimeout       no answer in time (also a TargetTimeout)

    BugInChild                  exit code 70, as every exception that is none of these

A message names the path, the actual value and the next thing to type.
Messages may hold names from the machine: whoever prints them escapes them.
"""

from __future__ import annotations


class BugInChild(Exception):
    """An exception that a child process did not expect: `text` is its `where_raised`. Ends with exit code 70, as a bug does."""


def where_raised(error: BaseException) -> str:
    """What an unexpected exception says, and where in opskit: `TypeError: no number at opskit/proc/x.py:12`.

    The text is foreign: whoever prints it escapes it.
    """
    package = __file__.rpartition("/")[0]
    place, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name.startswith(f"{package}/"):
            place = f" at opskit{name[len(package) :]}:{trace.tb_lineno}"
        trace = trace.tb_next
    said = str(error)
    return f"{type(error).__name__}{': ' * bool(said)}{said[:300]}{place}"


class OpskitError(Exception):
    """Anything that ends a command with one clear line and exit code 2. `lines` are printed below it, where there are any."""

    lines: tuple[str, ...] = ()


class UsageError(OpskitError):
    """The words of the command were off."""


class NotPermitted(OpskitError):
    """The kernel or a JVM refused; the message says which command would be allowed."""


class NoSuchProcess(OpskitError):
    """No process has this pid.

    `pid` is the number that was asked for; `hint` says what to type to find the right one.
    """

    def __init__(self, pid: int, hint: str = "") -> None:
        self.pid = pid
        super().__init__(f"no process {pid}{': ' + hint if hint else ''}")


class NotAJvm(OpskitError):
    """A process that is no HotSpot JVM; the message says what it is instead, where that is known."""


class BadInput(OpskitError):
    """Text that is not what it should be: `source:line: problem: found`.

    `line` counts from 1; None where the whole source is meant. `found` is the offending text itself.
    """

    def __init__(self, source: str, problem: str, line: int | None = None, found: str | None = None) -> None:
        self.source, self.problem, self.line, self.found = source, problem, line, found
        place = source if line is None else f"{source}:{line}"
        super().__init__(f"{place}: {problem}" + ("" if found is None else f": {found[:120]!r}"))


class NothingFound(BadInput):
    """A source without what was looked for: `no thread dump in app.log: 812 lines read`."""

    def __init__(self, what: str, source: str, lines: int) -> None:
        super().__init__(f"no {what} in {source}", f"{lines} line{'s' * (lines != 1)} read")


class CannotWrite(OpskitError):
    """An output file could not be written."""


class NotSupported(OpskitError):
    """What the command needs is not on this kernel, or not in this tree."""


class TargetTimeout(OpskitError):
    """A wait for another process ran out."""


class AttachError(OpskitError):
    """A JVM could not be asked. `reason` is stable and greppable; it ends the line of `opskit jvms` and hsperf-check."""

    reason = "failed"


class AttachOtherUser(AttachError, NotPermitted):
    """The JVM is another user's; only that user and root may attach."""

    reason = "other-user"


class AttachNotHotSpot(AttachError, NotAJvm):
    """OpenJ9 or a GraalVM native image: it speaks another protocol, or none."""

    reason = "not-hotspot"


class AttachDisabled(AttachError):
    """-XX:+DisableAttachMechanism: it was meant."""

    reason = "disabled"


class AttachStopped(AttachError):
    """A stopped or frozen JVM accepts the connection and never answers."""

    reason = "stopped"


class AttachNeedsRestart(AttachError):
    """The socket is gone, and this JVM does not make another one."""

    reason = "needs-restart"


class AttachTrigger(AttachError):
    """Without the trigger file the signal would only print a dump into the application's output: it was not sent."""

    reason = "no-trigger"


class AttachTmp(AttachError):
    """The JVM cannot make its socket in its /tmp."""

    reason = "tmp"


class AttachNoSignal(AttachError):
    """The JVM has not got a handler for SIGQUIT: sending it would kill."""

    reason = "no-signal-handler"


class AttachSocket(AttachError):
    """What is at the socket's path is not the JVM's listener."""

    reason = "socket"


class AttachSocketInsecure(AttachSocket):
    """No socket is there, but something else."""

    reason = "socket-insecure"


class AttachSocketOrphaned(AttachSocket):
    """Nobody listens on the socket, while the JVM believes that its listener has one."""

    reason = "socket-orphaned"


class AttachSocketForeign(AttachSocket):
    """Another process listens: two containers that share a /tmp both own `.java_pid1`. `peer` is its pid, 0 if unseen."""

    reason = "socket-foreign"

    def __init__(self, message: str, peer: int) -> None:
        self.peer = peer
        super().__init__(message)


class AttachDenied(AttachError, NotPermitted):
    """The kernel refused although the modes allow it."""

    reason = "denied"


class AttachRefused(AttachError, NotPermitted):
    """The JVM read our credentials and closed the connection."""

    reason = "credentials-refused"


class AttachReplyCut(AttachError):
    """The reply ended too early. `received_bytes` came."""

    reason = "reply-cut"

    def __init__(self, pid: int, what: str, received_bytes: int) -> None:
        self.received_bytes = received_bytes
        super().__init__(f"the reply of {pid} is cut off: {what}; did the JVM end meanwhile? Ask again")


class AttachReplyTooLarge(AttachError):
    """What came is larger than `limit_bytes`: no JVM says so much. It was thrown away."""

    reason = "reply-too-large"

    def __init__(self, message: str, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        super().__init__(message)


class AttachProtocol(AttachError):
    """What answered does not speak the attach protocol, or not this version of it."""

    reason = "protocol"


class AttachCommandFailed(AttachError):
    """The JVM refused the command. `code` and `said` are its own."""

    reason = "command-failed"

    def __init__(self, pid: int, command: str, code: int, said: str) -> None:
        self.code, self.said = code, said
        super().__init__(f"{pid} refused {command!r} (code {code}): {said}")


class AttachTimeout(AttachError, TargetTimeout):
    """No listener, or no answer, in time. `thread` is the comm of the thread that used most CPU meanwhile; None: none did."""

    reason = "timeout"

    def __init__(self, message: str, thread: str | None = None) -> None:
        self.thread = thread
        super().__init__(message)
