"""Which process is meant: a PID, a part of a JVM's main class or jar, a process name, or nothing where one JVM runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.errors import NoSuchProcess, UsageError
from opskit.proc.fs import optional
from opskit.proc.process import command_name
from opskit.proc.user_files import exists
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.host import Host
    from opskit.jvm.discover import Jvm

_MOST_LISTED = 40


class WhichProcess(UsageError):  # noqa: N818
    """No process, or several, were meant; `lines` lists those there are."""

    def __init__(self, problem: str, lines: Sequence[str] = ()) -> None:
        super().__init__(problem)
        self.lines = tuple(lines)


def is_pid(word: str) -> bool:
    """Whether a first argument is a PID: digits alone. A file of such a name is ./5."""
    return word.isascii() and word.isdigit()


def is_file(word: str) -> bool:
    """Whether a first argument is a file: `-` (standard input), a path with a slash, or what exists by that name."""
    return not is_pid(word) and (word == "-" or "/" in word or exists(word))


def pid_of(word: str) -> int:
    """The pid in a word of digits. Raises UsageError."""
    pid = integer(word)
    if pid is None or not 0 < pid < 2**31:
        raise UsageError(f"{word[:40]!r} is not a PID: a PID is a number from 1 to {2**31 - 1}")
    return pid


def resolve_process(host: Host, word: str, command: str) -> int:
    """The pid of a PID (which may not exist), a part of a JVM's main class or jar, a process name. Raises WhichProcess."""
    if is_pid(word):
        return pid_of(word)
    from opskit.jvm.discover import find_jvms

    found = find_jvms(host.fs, host.clock_ticks)
    matching = [jvm for jvm in found if word.lower() in jvm.main.lower()] if word else []
    named = {jvm.pid: _line(host, jvm) for jvm in matching}
    if not named and word:
        # opskit may run as python3, which is no answer to `opskit limits python3`.
        ours = integer(optional(host.fs.link, "self", default=b"")) if host.fs.is_live else None
        pids = (pid for pid in host.fs.pids() if pid != ours)
        named = {pid: f"{pid:>9}  {word}" for pid in pids if command_name(host.fs, pid) == word}
    if len(named) == 1:
        return next(iter(named))
    if named:
        listed = _shortened([*named.values()], "give a longer part of the name")
        raise WhichProcess(f"{len(named)} processes match {word!r}; give the PID of one", listed)
    what = f"{word!r} is not a PID or the name of a running JVM or process"
    raise WhichProcess(f"{command}: {what}; {shell.command('ps', '-e')} lists them")


def resolve_jvm(host: Host, word: str | None) -> int:
    """The pid of the JVM that is meant; None: the only one that runs. Raises NoSuchProcess, WhichProcess."""
    if word is not None and is_pid(word):
        pid = pid_of(word)
        if not host.fs.exists(pid):
            raise NoSuchProcess(pid, "opskit jvms lists the JVMs")
        return pid
    from opskit.jvm.discover import find_jvms

    found = find_jvms(host.fs, host.clock_ticks)
    if word is None:
        if len(found) == 1:
            return found[0].pid
        problem = "which JVM? Give a PID, or a part of its main class or jar" if found else "no JVM is running here"
        raise WhichProcess(problem, _lines(host, found))
    matching = [jvm for jvm in found if word.lower() in jvm.main.lower()]
    if len(matching) == 1:
        return matching[0].pid
    if matching:
        raise WhichProcess(f"{len(matching)} JVMs match {word!r}; give the PID of one", _lines(host, matching))
    running = ", these are running" if found else "; none is running here"
    raise WhichProcess(f"{word!r} is in no JVM's main class or jar{running}", _lines(host, found))


def _line(host: Host, jvm: Jvm) -> str:
    return f"{jvm.pid:>9}  {host.user_name(jvm.uid):<12}  {jvm.main}"


def _lines(host: Host, found: Sequence[Jvm]) -> list[str]:
    return _shortened([_line(host, jvm) for jvm in found], f"{shell.command('opskit', 'jvms')} lists them all")


def _shortened(lines: list[str], hint: str) -> list[str]:
    if len(lines) <= _MOST_LISTED:
        return lines
    return [*lines[:_MOST_LISTED], f"… {len(lines) - _MOST_LISTED:,} more; {hint}"]
