"""A process's own view of time: its zone, libfaketime in its memory, its time namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.clock.facts import View
from opskit.jvm.launch import jvm_options, parse_words
from opskit.proc.fake_time import VARIABLES, library_in
from opskit.proc.files.timens_offsets import parse_timens_offsets
from opskit.proc.fs import DENIED, GONE
from opskit.proc.namespaces import namespace
from opskit.proc.rights import as_owner_or_root
from opskit.proc.zones import zone_of

if TYPE_CHECKING:
    from opskit.host import Host
    from opskit.proc.fs import ProcFS
    from opskit.proc.process import Process
    from opskit.proc.zones import Zone

_LONGEST = 200


def read_view(host: Host, who: Process) -> View:
    """What can be read of it; the environment is the one that it was started with."""
    fs, pid = host.fs, who.pid
    problems: dict[str, None] = {}

    def attempt(name: str) -> str | None:
        try:
            return fs.load(str, pid, name)
        except GONE:
            return None
        except DENIED:
            advice = as_owner_or_root(fs, "CAP_SYS_PTRACE", pid, who.uid or 0)
            problems[f"the environment and libraries of {pid} cannot be read: permission denied; {advice}"] = None
        except OSError as error:
            problems[f"{fs.path(pid, name)}: {error.strerror}"] = None
        return None

    environ, maps = attempt("environ"), attempt("maps")
    variables = _variables(environ or "")
    words = fs.maybe(parse_words, pid, "cmdline", default=[])
    is_java = who.command == "java" or "/libjvm.so" in (maps or "")
    java = jvm_options(words, parse_words(environ or "")) if is_java else []
    return View(
        who,
        None if environ is None else _zone(host, pid, variables, java if is_java else None),
        None if maps is None else library_in(maps),
        next((variables[name] for name in VARIABLES if name in variables), None),
        fs.maybe(parse_timens_offsets, pid, "timens_offsets") if _has_own_time(fs, pid) else None,
        is_java,
        tuple(problems),
    )  # fmt: skip


def _variables(environ: str) -> dict[str, str]:
    """The first value of each variable, as getenv(3) finds it."""
    found: dict[str, str] = {}
    for word in parse_words(environ):
        name, is_set, value = word.partition("=")
        if is_set:
            found.setdefault(name, value[:_LONGEST])
    return found


def _zone(host: Host, pid: int, variables: dict[str, str], java: list[str] | None) -> Zone:
    """That of a JVM with these options, or (None) of the C library."""
    given, now, directory = variables.get("TZ"), host.now(), variables.get("TZDIR")
    if java is None:
        return zone_of(host.fs, pid, given, now, directory)
    from opskit.jvm.time_zone import java_zone_of

    return java_zone_of(host.fs, pid, java, given, now, directory)


def _has_own_time(fs: ProcFS, pid: int) -> bool:
    """Whether it is, or may be, in another time namespace than opskit."""
    theirs, ours = namespace(fs, pid, "time"), namespace(fs, "self", "time")
    return theirs is None or theirs != ours
