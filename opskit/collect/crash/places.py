"""Where JVMs write their reports: what each running JVM is set to, its working directory, /tmp, and the user's working directory.

HotSpot writes to -XX:ErrorFile (%p is the PID in the JVM's namespace), else to hs_err_pidN.log in the working directory, and where
that fails to /tmp. All of it is in the mount namespace of the JVM: /proc/PID/root leads there. A JVM that crashed is gone with its
settings; the one that was started instead has as a rule the same.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from opskit import shell
from opskit.collect.crash.directory import MOST_REPORTS, list_directory, read_listed, why_not_read
from opskit.collect.crash.facts import Place, Read, Unread
from opskit.jvm.discover import survey
from opskit.jvm.launch import last_flag, parse_words
from opskit.proc.fs import optional
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.host import Host
    from opskit.jvm.discover import Jvm
    from opskit.proc.fs import ProcFS

_MOST_JVMS = 200
_TMP = "/tmp"  # noqa: S108  (where HotSpot writes)
_ERROR_FILE = "-XX:ErrorFile="
_DELETED = " (deleted)"
_READ_IT = shell.command("opskit", "crash", "-")


class _Where(NamedTuple):
    """A directory as `what` has it. `path`: as we open it; None: `why_not`. `root`: what stands before the paths of its JVM."""

    shown: str
    what: str
    path: str | None
    root: str
    named: re.Pattern[str] | None = None
    why_not: str | None = None


def look(host: Host, core_pattern: str | None) -> tuple[list[Read], list[Unread], list[Place]]:
    """The reports in all places, each directory once however many JVMs use it."""
    reads: list[Read] = []
    unread: list[Unread] = []
    places: list[Place] = []
    seen: dict[tuple[int, int], int] = {}
    for where in _places(host):
        directory = None if where.path is None else optional(host.fs.file_id_at, f"{where.path}/.")
        if directory is not None:
            known = seen.setdefault((directory.device, directory.inode), len(places))
            if known < len(places) and where.named is None:
                places[known] = _also(places[known], where)
                continue
        place, found, failed = _look_at(host, where, core_pattern, reads)
        places.append(place)
        reads += found
        unread += failed
    reads.sort(key=lambda read: -(read.modified_s or 0.0))
    return reads[:MOST_REPORTS], list(dict.fromkeys(unread)), places


def _also(place: Place, where: _Where) -> Place:
    whats = place.what.split("; ")
    if where.what in whats or len(whats) > 3:
        return place
    return place._replace(what=f"{place.what}; {where.what}")


def _look_at(
    host: Host, where: _Where, core_pattern: str | None, before: list[Read]
) -> tuple[Place, list[Read], list[Unread]]:
    if where.path is None:
        return Place(where.shown, where.what, (), where.why_not), [], []
    try:
        listing = list_directory(host.fs, where.path, where.named)
    except OSError as error:
        return Place(where.path, where.what, (), why_not_read(error)), [], []
    place = Place(where.path, where.what, [f"{where.path}/{name}" for name, _ in listing.reports])
    known = {read.name for read in before}
    new = [each for each in listing.reports if f"{where.path}/{each[0]}" not in known]
    if new and len(before) >= MOST_REPORTS:
        return place, [], [Unread(where.path, f"not read: at most {MOST_REPORTS} reports are read")]
    roots = dict.fromkeys((where.root, host.fs.root))
    reads, unread = read_listed(host.fs, where.path, listing._replace(reports=new), host.fs, list(roots), core_pattern)
    return place, reads, unread


def _places(host: Host) -> Iterator[_Where]:
    fs = host.fs
    if host.is_own and (ours := _cwd(host, "self")) is not None:
        yield _Where(ours, "your working directory", ours, fs.root)
    if fs.root or fs.has_our_root:
        yield _Where(f"{fs.root}{_TMP}", _TMP, f"{fs.root}{_TMP}", fs.root)
    for jvm in survey(fs, host.clock_ticks).jvms[:_MOST_JVMS]:
        yield from _of_jvm(host, jvm)


def _of_jvm(host: Host, jvm: Jvm) -> Iterator[_Where]:
    fs, pid = host.fs, jvm.pid
    who = f"{pid} ({jvm.main.rpartition('/')[2]})"
    cwd = _cwd(host, pid)
    root = _root(host, pid)
    words, environment = (fs.maybe(parse_words, pid, name, default=[]) for name in ("cmdline", "environ"))
    for number, stream in ((1, "Stdout"), (2, "Stderr")):
        flag = last_flag(words, environment, f"ErrorFileTo{stream}")
        if flag == f"-XX:+ErrorFileTo{stream}":
            target = optional(fs.link, pid, "fd", number, default=b"its terminal or log")
            why = f"it writes its report there: find it with `# A fatal error` and give it to {_READ_IT}"
            yield _Where(target.decode("utf-8", "surrogateescape"), f"{flag} of {who}", None, root, None, why)
    flag = last_flag(words, environment, "ErrorFile")
    is_gone = cwd is not None and cwd.endswith(_DELETED)
    if flag is not None:
        file = flag.removeprefix(_ERROR_FILE)
        path = file if file.startswith("/") else None if cwd is None or is_gone else posixpath.join(cwd, file)
        if path is not None:
            directory, _, name = path.rpartition("/")
            yield _inside(
                host,
                pid,
                directory.replace("%p", str(jvm.ns_pid)) or "/",
                f"-XX:ErrorFile of {who}",
                root,
                _numbered(name),
            )
    if cwd is None:
        why_not = _why_no_cwd(fs, pid)
        if why_not is not None:
            yield _Where(fs.path(pid, "cwd"), f"working directory of {who}", None, root, None, why_not)
    elif is_gone:
        yield _Where(cwd, f"working directory of {who}", None, root, None, "deleted")
    else:
        yield _inside(host, pid, cwd, f"working directory of {who}", root)
    if cwd is not None:
        yield _inside(host, pid, _TMP, f"{_TMP} of {who}", root)


def _inside(host: Host, pid: int, path: str, what: str, root: str, named: re.Pattern[str] | None = None) -> _Where:
    """A directory of a process, by a plain path where its root is the machine's."""
    try:
        at = host.fs.inside(pid, path)
    except OSError as error:
        return _Where(path, what, None, root, named, why_not_read(error))
    return _Where(path, what, f"{root}{path.rstrip('/')}" if root == host.fs.root else at, root, named)


def _cwd(host: Host, pid: int | str) -> str | None:
    target = optional(host.fs.link, pid, "cwd")
    path = None if target is None else target.decode("utf-8", "surrogateescape")
    return path if path is not None and path.startswith("/") else None


def _why_no_cwd(fs: ProcFS, pid: int) -> str | None:
    """None: the process has ended."""
    if not fs.is_live:
        return "not in this copy"
    try:
        fs.link(pid, "cwd")
    except PermissionError:
        return "permission denied; run as root"
    except OSError:
        return None
    return None


def _root(host: Host, pid: int) -> str:
    """What stands before the absolute paths of a process: the machine's root where it is the same, else PROC/PID/root."""
    fs = host.fs
    its = optional(fs.file_id, pid, "root")
    machine = optional(fs.file_id_at, f"{fs.root}/.")
    same = its is not None and machine is not None and (its.device, its.inode) == (machine.device, machine.inode)
    namespaces = {optional(fs.link, each, "ns", "mnt") for each in (pid, "self" if host.is_own else 1)}
    return fs.root if same and len(namespaces) == 1 else fs.path(pid, "root")


def _numbered(name: str) -> re.Pattern[str]:
    """The names that an ErrorFile's gives: %p is a PID."""
    parts = re.split(r"(%p|%%)", name)
    numbers = {"%p": r"[0-9]{1,10}", "%%": "%"}
    return re.compile("".join(numbers.get(part, re.escape(part)) for part in parts))
