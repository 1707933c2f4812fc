"""Which JVM is meant: a PID, a part of a main class or jar, or nothing where the machine has one JVM only."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from opskit.errors import NoSuchProcess, UsageError
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.host import Host
    from opskit.jvm.discover import Jvm

_MOST_LISTED = 40


class WhichJvm(UsageError):  # noqa: N818
    """No JVM, or several, were meant; `lines` lists those there are."""

    def __init__(self, problem: str, lines: Sequence[str] = ()) -> None:
        super().__init__(problem)
        self.lines = tuple(lines)


def is_pid(word: str) -> bool:
    """Whether a first argument is a PID: digits alone. A file of such a name is ./5."""
    return word.isascii() and word.isdigit()


def is_file(word: str) -> bool:
    """Whether a first argument is a file: `-` (standard input), a path with a slash, or what exists by that name."""
    return not is_pid(word) and (word == "-" or "/" in word or os.path.lexists(word))


def resolve_jvm(host: Host, word: str | None) -> int:
    """The pid of the JVM that is meant. Whether it can be asked is found out by whoever asks it.

    Raises NoSuchProcess, and WhichJvm where the words fit no JVM or several.
    """
    if word is not None and is_pid(word):
        pid = integer(word)
        if pid is None:
            raise UsageError(f"{word[:40]!r} … is no pid: it has {len(word)} digits")
        if not 0 < pid < 2**31 or not host.fs.exists(pid):
            raise NoSuchProcess(pid, "opskit jvms lists the JVMs")
        return pid
    from opskit.jvm.discover import find_jvms  # noqa: PLC0415  (a command that is given a file does not look for JVMs)

    found = find_jvms(host.fs, host.clock_ticks)
    if word is None:
        if len(found) == 1:
            return found[0].pid
        raise WhichJvm(
            "which JVM? Give a PID, or a part of its main class or jar" if found else "no JVM is running here",
            _lines(host, found),
        )
    matching = [jvm for jvm in found if word.lower() in jvm.main.lower()]
    if len(matching) == 1:
        return matching[0].pid
    if matching:
        raise WhichJvm(f"{len(matching)} JVMs match {word!r}; give the PID of one", _lines(host, matching))
    raise WhichJvm(
        f"{word!r} is in no JVM's main class or jar" + (", these are running" if found else "; none is running here"),
        _lines(host, found),
    )


def _lines(host: Host, found: Sequence[Jvm]) -> list[str]:
    lines = [f"{jvm.pid:>9}  {host.user_name(jvm.uid):<12}  {jvm.main}" for jvm in found[:_MOST_LISTED]]
    if len(found) > _MOST_LISTED:
        lines.append(f"… {len(found) - _MOST_LISTED} more; opskit jvms lists them all")
    return lines
