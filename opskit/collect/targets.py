"""Which process is meant: a PID, a part of a JVM's main class or jar, a process name, or nothing where one JVM runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.errors import NoSuchProcess, UsageError
from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import optional
from opskit.proc.process import command_name
from opskit.proc.user_files import exists
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.host import Host
    from opskit.jvm.discover import Jvm
    from opskit.proc.fs import ProcFS

_MOST_LISTED = 40
_A_PART = "a part of a running JVM's main class or jar"


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
    pid = find_process(host, word)
    if pid is None:
        what = f"{word!r} is not a PID, {_A_PART} or the name of a process"
        raise WhichProcess(f"{command}: {what}; {shell.command('ps', '-e')} lists them")
    return pid


def find_process(host: Host, word: str) -> int | None:
    """The pid of the JVM or process that a word means which is no PID; None: there is none. Raises WhichProcess for several."""
    from opskit.jvm.discover import find_jvms

    pid = _the_jvm(host, word, find_jvms(host.fs, host.clock_ticks))
    if pid is not None:
        return pid
    ours = _ourselves(host.fs) if host.fs.is_live else ()
    named = [pid for pid in (host.fs.pids() if word else ()) if command_name(host.fs, pid) == word and pid not in ours]
    if len(named) > 1:
        listed = _shortened([f"{pid:>9}  {word}" for pid in named], "give a longer part of the name")
        raise WhichProcess(f"{len(named)} processes match {word!r}; give the PID of one", listed)
    return named[0] if named else None


def _ourselves(fs: ProcFS) -> Sequence[int | None]:
    """opskit, which may run as python3, is no answer to `opskit limits python3`; nor is its parent, where a forked child looks."""
    ours = integer(optional(fs.link, "self", default=b""))
    if ours is None:
        return ()
    stat = fs.maybe(parse_stat, ours, "stat")
    words = fs.maybe(str, ours, "cmdline")
    is_child = stat is not None and words and fs.maybe(str, stat.ppid, "cmdline") == words
    return (ours, stat.ppid) if stat is not None and is_child else (ours,)


def resolve_jvm(host: Host, word: str | None, *, or_file: bool = False, may_have_ended: bool = False) -> int:
    """The pid of the JVM that is meant; None: the only one that runs. Raises NoSuchProcess, WhichProcess.

    `or_file`: a file could have been meant. `may_have_ended`: a PID is accepted as it is.
    """
    if word is not None and is_pid(word):
        pid = pid_of(word)
        if not may_have_ended and not host.fs.exists(pid):
            raise NoSuchProcess(pid, "opskit jvms lists the JVMs")
        return pid
    from opskit.jvm.discover import find_jvms

    found = find_jvms(host.fs, host.clock_ticks)
    if word is None:
        if len(found) == 1:
            return found[0].pid
        problem = "which JVM? Give a PID, or a part of its main class or jar" if found else "no JVM is running here"
        raise WhichProcess(problem, _lines(host, found))
    jvm = _the_jvm(host, word, found)
    if jvm is not None:
        return jvm
    what = f"{word!r} is not a PID{', a file' if or_file else ''} or {_A_PART}"
    raise WhichProcess(f"{what}; {'these are running' if found else 'none is running here'}", _lines(host, found))


def _the_jvm(host: Host, word: str, found: Sequence[Jvm]) -> int | None:
    """The pid of the JVM with this in its main class or jar, else with exactly this process name. Raises WhichProcess for several."""
    matching = [jvm for jvm in found if word.lower() in jvm.main.lower()] if word else []
    matching = matching or [jvm for jvm in found if command_name(host.fs, jvm.pid) == word]
    if len(matching) > 1:
        raise WhichProcess(f"{len(matching)} JVMs match {word!r}; give the PID of one", _lines(host, matching))
    return matching[0].pid if matching else None


def _line(host: Host, jvm: Jvm) -> str:
    return f"{jvm.pid:>9}  {host.user_name(jvm.uid):<12}  {jvm.main}"


def _lines(host: Host, found: Sequence[Jvm]) -> list[str]:
    return _shortened([_line(host, jvm) for jvm in found], f"{shell.command('opskit', 'jvms')} lists them all")


def _shortened(lines: list[str], hint: str) -> list[str]:
    if len(lines) <= _MOST_LISTED:
        return lines
    return [*lines[:_MOST_LISTED], f"… {len(lines) - _MOST_LISTED:,} more; {hint}"]
