"""Files in /tmp of JVMs that have ended: sockets, trigger files, hsperfdata. Reads only."""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING

from opskit.proc.files.status import parse_status
from opskit.proc.fs import ProcFS, optional
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from opskit.jvm.attach.files import Entry, FileFinder, Tmp
    from opskit.jvm.discover import Jvm

_NAMES = re.compile(r"\.(java|attach)_pid([1-9][0-9]{0,8})")
_PID = re.compile(r"[1-9][0-9]{0,8}")


class Leftover(NamedTuple):
    """A file of a JVM that has ended. `kind`: socket, trigger or hsperfdata; `pid`: from its name.

    `locked`: a process holds an flock on it; `mapped`: a process maps it; None: not every process could be read.
    `by_pid`: `opskit hsperf-check PID` finds it, since it is in our /tmp and no process has the PID now.
    """

    pid: int
    kind: str
    entry: Entry
    locked: bool | None = None
    mapped: bool | None = None
    by_pid: bool = False


class _Living(NamedTuple):
    """PIDs that are not left over: of JVMs with this /tmp, of `any` process; `wanted`: only files of these PIDs are looked at."""

    jvms: set[int]
    any: Container[int]
    wanted: Sequence[int] | None


def find_leftovers(
    finder: FileFinder, around: Iterable[Tmp | None], jvms: Iterable[Jvm], wanted: Sequence[int] | None
) -> list[Leftover]:
    """The files of ended JVMs in our /tmp and in those of `around`. `jvms`: all that run; each has its files in its own /tmp."""
    tmps: dict[tuple[int, int], Entry] = {}
    for tmp in [finder.our_tmp(), *around]:
        if tmp is not None:
            tmps.setdefault(tmp.key, tmp.entry)
    used: dict[tuple[int, int] | None, set[int]] = {}
    for jvm in jvms:
        tmp = finder.tmp_of(jvm)
        used.setdefault(tmp.key if tmp else None, set()).add(jvm.ns_pid)
    hidden = used.get(None, set())  # may be in any of them
    alive = _InnerPids(finder.fs) if finder.listening is None else _OwnPids(finder.fs)
    return [
        left
        for key, entry in tmps.items()
        for left in _left_in(finder, entry, _Living(used.get(key, set()) | hidden, alive, wanted))
    ]


def _left_in(finder: FileFinder, tmp: Entry, living: _Living) -> Iterator[Leftover]:
    for name in sorted(optional(finder.fs.names_at, tmp.path, default=[])):
        if name.startswith("hsperfdata_"):
            yield from _left_counters(finder, tmp, name, living)
        match = _NAMES.fullmatch(name)
        pid = integer(match[2]) if match else None
        if match is None or pid is None or (living.wanted is not None and pid not in living.wanted):
            continue
        by_pid = _is_found_by(finder, pid, tmp)
        if match[1] == "java" and pid not in living.jvms:
            socket = finder.socket(tmp, name)
            if socket is not None and socket.alive is False:
                yield Leftover(pid, "socket", socket.entry, by_pid=by_pid)
        elif match[1] == "attach" and pid not in living.any:
            entry = finder.entry_in(tmp, name)
            if entry is not None:
                yield Leftover(pid, "trigger", entry, by_pid=by_pid)


def _left_counters(finder: FileFinder, tmp: Entry, user: str, living: _Living) -> Iterator[Leftover]:
    path = f"{tmp.path}/{user}"
    directory = optional(finder.fs.file_id_at, path)
    if directory is None or not stat.S_ISDIR(directory.mode):
        return
    for name in sorted(optional(finder.fs.names_at, path, default=[])):
        pid = integer(name) if _PID.fullmatch(name) else None
        if pid is None or pid in living.jvms or (living.wanted is not None and pid not in living.wanted):
            continue
        entry = finder.entry_in(tmp, user, name)
        if entry is None:
            continue
        locked, mapped = finder.holders.is_locked(entry.file.inode), finder.holders.is_mapped(entry.file)
        if mapped or locked or (mapped is None and pid in living.any):
            continue
        by_pid = _is_found_by(finder, pid, tmp)
        yield Leftover(pid, "hsperfdata", entry, locked=locked, mapped=mapped, by_pid=by_pid)


def _is_found_by(finder: FileFinder, pid: int, tmp: Entry) -> bool:
    return tmp.path == finder.ours and not finder.fs.exists(pid)


class _OwnPids:
    """The PIDs of living processes here, which are looked for one by one."""

    def __init__(self, fs: ProcFS) -> None:
        self._fs = fs

    def __contains__(self, pid: object) -> bool:
        return self._fs.exists(pid)


class _InnerPids:
    """Every PID that a living process has, in any namespace that is visible from here; read when it is first needed."""

    def __init__(self, fs: ProcFS) -> None:
        self._fs = fs
        self._pids: set[int] | None = None

    def __contains__(self, pid: object) -> bool:
        if self._pids is None:
            fs = self._fs
            found = (fs.maybe(lambda text: parse_status(text).ns_pids, each, "status") or (each,) for each in fs.pids())
            self._pids = {each for inner in found for each in inner}
        return pid in self._pids
