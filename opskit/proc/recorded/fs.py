"""The files of a captured machine. With a `source` what the tape does not hold is asked there once, and kept: a recording."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, TypeVar

from opskit.proc.calls import Calls
from opskit.proc.fs import LARGEST_BYTES, ProcFS, Refused, largest_bytes
from opskit.proc.recorded import tape as kinds
from opskit.proc.recorded.replies import Replies
from opskit.proc.recorded.tape import Failure, Tape

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.proc.fd_directory import FdLink
    from opskit.proc.file_id import FileId
    from opskit.proc.file_space import Space
    from opskit.proc.recorded.clock import TapeClock

T = TypeVar("T")


class TapeFS(ProcFS):
    """A captured tree, at the mark of its clock."""

    def __init__(self, tape: Tape, clock: TapeClock, source: ProcFS | None = None) -> None:
        super().__init__(tape.origin.proc, tape.origin.root or "/")
        self.tape, self.clock, self.source = tape, clock, source
        self.is_live = tape.origin.is_live and len(tape.marks) > 1  # rates exist
        self.has_our_root = tape.origin.has_our_root
        self.uses_nss = tape.origin.uses_nss
        self.calls = TapeCalls(self)
        self.replies = Replies(tape, clock, source)

    def is_own(self) -> bool:
        """Whether it was so on the captured machine. No PID here is one there: see Host.prove_own."""
        return self.tape.origin.is_own and self.is_live

    # primitives

    def read_path(self, path: str, limit_bytes: int = LARGEST_BYTES) -> bytes:
        """A whole file."""
        data: bytes = self._answer(kinds.FILE, path, lambda source: source.read_path(path))
        limit_bytes = largest_bytes(path, limit_bytes)
        if len(data) > limit_bytes:
            raise Refused.too_large(path, limit_bytes)
        return data

    def file_id_at(self, path: str) -> FileId:
        """The file at a path, without following a link at its end."""
        found: FileId = self._answer(kinds.LSTAT, path, lambda source: source.file_id_at(path))
        return found

    def names_at(self, path: str, most: int | None = None) -> list[str]:
        """The names in a directory, in its order."""
        names = self._answer(kinds.NAMES, path, lambda source: tuple(source.names_at(path, most)))
        return list(names[:most])

    def is_writable(self, path: str) -> bool:
        """Whether the rights and the mount let the capture's maker write there."""
        found: bool = self._answer(kinds.WRITABLE, path, lambda source: source.is_writable(path))
        return found

    def space_at(self, path: str) -> Space:
        """The free space on the file system of a path."""
        found: Space = self._answer(kinds.SPACE, path, lambda source: source.space_at(path))
        return found

    def fd_targets(self, *parts: object) -> list[bytes]:
        """Where every fd points."""
        return [target for _, target, _ in self._fds(parts)]

    def fd_pairs(self, *parts: object) -> list[tuple[bytes, bytes]]:
        """The name of each fd, with where it points."""
        return [(name, target) for name, target, _ in self._fds(parts)]

    def fd_links(self, *parts: object, wanted: tuple[bytes, ...] = (b"",)) -> list[FdLink]:
        """The fds whose target begins with one of `wanted`."""
        return [each for each in self._fds(parts) if each[1].startswith(wanted)]

    def _exists(self, path: str) -> bool:
        try:
            self.file_id_at(path)
        except OSError:
            return False
        return True

    def _stat(self, path: str) -> FileId:
        found: FileId = self._answer(kinds.STAT, path, lambda source: source._stat(path))  # noqa: SLF001
        return found

    def _readlink(self, path: str) -> bytes:
        found: bytes = self._answer(kinds.LINK, path, lambda source: source._readlink(path))  # noqa: SLF001
        return found

    def _fds(self, parts: tuple[object, ...]) -> list[FdLink]:
        path = self.path(*parts, "fd")
        return list(self._answer(kinds.FDS, path, lambda source: tuple(source.fd_links(*parts))))

    def _answer(self, kind: str, key: str, ask: Callable[[Any], Any]) -> Any:
        try:
            answer = self.tape.find(kind, key, self.clock.mark)
        except KeyError:
            answer = self._recorded(kind, key, ask)
        if isinstance(answer, Failure):
            raise OSError(answer.errno, answer.why or os.strerror(answer.errno), key)
        return answer

    def _recorded(self, kind: str, key: str, ask: Callable[[Any], Any]) -> Any:
        if self.source is None:
            return Failure(errno.ENOENT)
        try:
            answer = ask(self.source)
        except OSError as error:
            answer = Failure(error.errno or errno.EIO, error.strerror)
        self.tape.keep(kind, key, answer)
        return answer


class TapeCalls(Calls):
    """The answers that were given when the capture was made."""

    def __init__(self, fs: TapeFS) -> None:
        self._fs = fs
