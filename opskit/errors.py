"""What can go wrong, classed by what the user can do about it.

    OpskitError                 exit code 2, one line on stderr
    ├── UsageError              the words of the command were off
    ├── NotPermitted            what was refused, to whom, and the command that would be allowed
    ├── NoSuchProcess           the pid is not there
    ├── NotAJvm                 the process is there, and is no HotSpot JVM
    ├── BadInput                source:line: problem, with the text that was found there
    ├── CannotWrite             the output could not be written; nothing half-written stays
    ├── NotSupported            this kernel, tree or machine has not got what the command needs
    └── TargetTimeout           what was waited for, how long, what the target was doing meanwhile

A message names the path, the actual value and the next thing to type.
Messages may hold names from the machine: whoever prints them escapes them.
"""

from __future__ import annotations


class OpskitError(Exception):
    """Anything that ends a command with one clear line and exit code 2. `lines` are printed below it, where there are any."""

    lines: tuple[str, ...] = ()


class UsageError(OpskitError):
    """The words of the command were off."""


class NotPermitted(OpskitError):  # noqa: N818  (these names are what the user meets in the docs)
    """The kernel or a JVM refused; the message says which command would be allowed."""


class NoSuchProcess(OpskitError):  # noqa: N818
    """No process has this pid.

    `pid` is the number that was asked for; `hint` says what to type to find the right one.
    """

    def __init__(self, pid: int, hint: str = "") -> None:
        self.pid = pid
        super().__init__(f"no process {pid}{': ' + hint if hint else ''}")


class NotAJvm(OpskitError):  # noqa: N818
    """A process that is no HotSpot JVM; the message says what it is instead, where that is known."""


class BadInput(OpskitError):  # noqa: N818
    """Text that is not what it should be: `source:line: problem: found`.

    `line` counts from 1; None where the whole source is meant. `found` is the offending text itself.
    """

    def __init__(self, source: str, problem: str, line: int | None = None, found: str | None = None) -> None:
        self.source, self.problem, self.line, self.found = source, problem, line, found
        place = source if line is None else f"{source}:{line}"
        super().__init__(f"{place}: {problem}" + ("" if found is None else f": {found[:120]!r}"))


class CannotWrite(OpskitError):  # noqa: N818
    """An output file could not be written."""


class NotSupported(OpskitError):  # noqa: N818
    """What the command needs is not on this kernel, or not in this tree."""


class TargetTimeout(OpskitError):  # noqa: N818
    """A wait for another process ran out."""
