"""What follows from the answers of a tape for a question that nobody asked: a name that a listing lacks is not there."""

from __future__ import annotations

import errno
import posixpath
import re
import stat
from typing import TYPE_CHECKING, Any

from opskit.proc.recorded.tape import (
    ENTRIES,
    FDS,
    FILE,
    LINK,
    LSTAT,
    NAMES,
    OPENED,
    RANGES,
    SOME,
    STAT,
    UNTRUSTED,
    Failure,
)

if TYPE_CHECKING:
    from opskit.proc.recorded.tape import Tape

_GONE = (errno.ENOENT, errno.ESRCH, errno.ENOTDIR)
_SHOWS_ABSENCE = (FILE, LSTAT, STAT, NAMES, ENTRIES, FDS, LINK, OPENED, UNTRUSTED)
_LONGEST_PATH = 4096
_COMM = "/comm"
_OF_LEADER = re.compile(r"(.*/([0-9]+))/task/\2(/comm|/fd(?:/[0-9]+)?)", re.DOTALL)  # where a thread's is the process's


def implied(tape: Tape, kind: str, path: str, mark: int) -> Any:
    """An answer, a Failure where the path is not there, or None: unknown."""
    if len(path) > _LONGEST_PATH or "\0" in path:
        return Failure(errno.ENOENT)
    found = _same(tape, kind, path, mark)
    if found is None and (leader := _OF_LEADER.fullmatch(path)) is not None:
        of_process = leader[1] + leader[3]
        found = _find(tape, kind, of_process, mark)
        found = _same(tape, kind, of_process, mark) if found is None else found
    return found if found is not None else _absent(tape, path, mark)


def is_listed(tape: Tape, path: str, mark: int) -> bool:
    """Whether the listing of its directory has it."""
    parent, _, name = path.rpartition("/")
    listed = _names(tape, parent or "/", mark)
    return listed is not None and not isinstance(listed, Failure) and name in listed


def _same(tape: Tape, kind: str, path: str, mark: int) -> Any:
    """The answer to another question about the same path that says it, too."""
    if kind == FILE and path.endswith(_COMM):
        return _name_in(_find(tape, FILE, f"{path[: -len(_COMM)]}/stat", mark))
    if kind == NAMES:
        return _names(tape, path, mark)
    if kind == STAT:
        found = _find(tape, LSTAT, path, mark)
        return found if isinstance(found, Failure) or (found is not None and not stat.S_ISLNK(found.mode)) else None
    if kind == OPENED:
        return True if any(_is_there(_find(tape, each, path, mark)) for each in (FILE, RANGES)) else None
    if kind == LINK:
        directory, _, name = path.rpartition("/")
        for each, target, _ in _listed(tape, FDS, directory, mark):
            if target and each == name.encode("utf-8", "surrogateescape"):
                return target
        at_end = _find(tape, LSTAT, path, mark)
        if _is_there(at_end) and not stat.S_ISLNK(at_end.mode):
            return Failure(errno.EINVAL)
    return None


def _name_in(stat_file: Any) -> bytes | None:
    """The name of a process or thread as `comm` has it: `4242 (java) S` -> `java`."""
    if not isinstance(stat_file, bytes):
        return None
    begin, end = stat_file.find(b"("), stat_file.rfind(b")")
    return stat_file[begin + 1 : end] + b"\n" if 0 <= begin < end else None


def _absent(tape: Tape, path: str, mark: int) -> Failure | None:
    """ENOENT where a listing lacks it or a directory above it, or where another question found nothing there."""
    place = posixpath.normpath(path)
    if path.startswith("//"):
        place = place[1:]
    while True:
        for kind in _SHOWS_ABSENCE:
            found = _find(tape, kind, place, mark)
            if isinstance(found, Failure) and found.errno in _GONE and not (kind == LINK and place != path):
                return Failure(errno.ENOENT)
        parent, _, name = place.rpartition("/")
        listed = _names(tape, parent or "/", mark, whole=True)
        if listed is not None and not isinstance(listed, Failure) and name not in listed:
            return Failure(errno.ENOENT)
        if not parent:
            return None
        place = parent


def _names(tape: Tape, path: str, mark: int, *, whole: bool = False) -> tuple[str, ...] | Failure | None:
    found = _find(tape, NAMES, path, mark)
    if found is not None:
        return found  # type: ignore[no-any-return]
    if (fds := _find(tape, FDS, path, mark)) is not None:
        return fds if isinstance(fds, Failure) else tuple(name.decode("utf-8", "surrogateescape") for name, _, _ in fds)
    if (entries := _find(tape, ENTRIES, path, mark)) is not None:
        return entries if isinstance(entries, Failure) else tuple(name for name, _, _ in entries)
    return None if whole else _find(tape, SOME, path, mark)


def _listed(tape: Tape, kind: str, path: str, mark: int) -> Any:
    found = _find(tape, kind, path, mark)
    return () if found is None or isinstance(found, Failure) else found


def _is_there(answer: object) -> bool:
    return answer is not None and not isinstance(answer, Failure)


def _find(tape: Tape, kind: str, path: str, mark: int) -> Any:
    try:
        return tape.find(kind, path, mark)
    except KeyError:
        return None
