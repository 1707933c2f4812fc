"""The files of a captured machine. With a `source` what the tape does not hold is asked there once, and kept: a recording."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from opskit.proc.copied_files import LARGEST_COPIED_BYTES, check_has_root, largest_copied_bytes
from opskit.proc.file_id import FileId, check_untrusted
from opskit.proc.fs import LARGEST_BYTES, ProcFS, Refused, largest_bytes
from opskit.proc.kept_reads import Hangs
from opskit.proc.patient_reads import PatientReads
from opskit.proc.recorded import tape as kinds
from opskit.proc.recorded.calls import TapeCalls
from opskit.proc.recorded.departed import Departed
from opskit.proc.recorded.held import Parts, TapeFile
from opskit.proc.recorded.implied import implied, is_listed
from opskit.proc.recorded.replies import Replies
from opskit.proc.recorded.tape import Failure, Tape

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.proc.fd_directory import FdLink
    from opskit.proc.file_space import Space
    from opskit.proc.held_file import HeldFile
    from opskit.proc.recorded.clock import TapeClock

NOT_CAPTURED = "not in the capture"


class TapeFS(ProcFS):
    """A captured tree, at the mark of its clock. What nobody asked for when it was captured is refused: it is unknown."""

    small_read_bytes = 64

    def __init__(self, tape: Tape, clock: TapeClock, source: ProcFS | None = None) -> None:
        super().__init__(tape.origin.proc, tape.origin.root or "/")
        self.tape, self.clock, self.source = tape, clock, source
        self.is_live = tape.origin.is_live
        self.has_our_root = tape.origin.has_our_root
        self.uses_nss = tape.origin.uses_nss
        self.calls = TapeCalls(self)
        self.machine = tape.origin.machine or self.machine
        self.replies = Replies(tape, clock, source)
        self._is_tree = bool(tape.origin.root) or self.proc != "/proc"
        self._departed = Departed(tape, self.proc)
        self._parts = Parts(tape, self.failure_of)
        self._shared: dict[
            bytes, bytes
        ] = {}  # contents that a recording has: many processes have the same limits and mounts

    @property
    def has_rates(self) -> bool:
        """Whether it has two samples."""
        return self.is_live and len(self.tape.marks) > 1

    def is_own(self) -> bool:
        """Whether it was so on the captured machine. No PID here is one there: see Host.prove_own."""
        return self.tape.origin.is_own and self.is_live

    @property
    def fds(self) -> tuple[int, ...]:
        """Those of the source."""
        return () if self.source is None else self.source.fds

    def inside(self, pid: int, path: str) -> str:
        """As the machine itself has it, or the copy of it that was captured."""
        if not self.tape.origin.is_live:
            check_has_root(self, pid)
        return super().inside(pid, path)

    # primitives

    def read_path(self, path: str, limit_bytes: int = LARGEST_BYTES) -> bytes:
        """A whole file."""
        data: bytes = self._answer(kinds.FILE, path, lambda source: source.read_path(path))
        limit_bytes = largest_bytes(path, limit_bytes)
        if self.source is None:
            limit_bytes = largest_copied_bytes(path, min(limit_bytes, LARGEST_COPIED_BYTES))
        if len(data) > limit_bytes:
            raise Refused.too_large(path, limit_bytes)
        return data

    def read_at(self, path: str, offset: int, size: int) -> bytes:
        """A part of a file."""
        source = self.source
        return self.part(
            path, offset, size, None if source is None else lambda at, most: source.read_at(path, at, most)
        )

    def hold(self, path: str) -> HeldFile:
        """A file of which parts are read."""
        return self._hold(path, lambda source: source.hold(path))

    def hold_regular(self, path: str) -> HeldFile:
        """The same; the capture's maker found that it was a regular file."""
        return self._hold(path, lambda source: source.hold_regular(path))

    def read_untrusted(self, directory: str, name: str, limit_bytes: int) -> tuple[FileId, bytes]:
        """A regular file in a directory that others may write to."""
        path = f"{directory}/{name}"
        if self.source is not None and not self._knows(kinds.UNTRUSTED, path):
            self._record_untrusted(self.source, directory, name, limit_bytes)
        if self._knows(kinds.UNTRUSTED, path) or not self._knows(kinds.FILE, path):
            self._answer(kinds.UNTRUSTED, path, lambda _: True)
        found = self.file_id_at(path)
        try:
            check_untrusted(found, path, limit_bytes)
        except OSError as error:
            if self._is_tree:  # which counts it
                self.refused[path] = str(error.strerror)
            raise
        return found, self.read_path(path)[:limit_bytes]

    def names_at(self, path: str, most: int | None = None) -> list[str]:
        """The names in a directory, in its order."""
        if most is not None and not self._knows(kinds.NAMES, path) and self.source is not None:
            return self._first_names(self.source, path, most)
        return list(self._answer(kinds.NAMES, path, lambda source: tuple(source.names_at(path)))[:most])

    def entries_at(self, path: str) -> list[tuple[str, bool, bool]]:
        """Each name in a directory, whether it is a directory, and whether it is a link."""
        return list(self._answer(kinds.ENTRIES, path, lambda source: tuple(source.entries_at(path))))

    def file_id_at(self, path: str) -> FileId:
        """The file at a path, without following a link at its end."""
        found: FileId = self._answer(kinds.LSTAT, path, lambda source: source.file_id_at(path))
        return found

    def is_writable(self, path: str) -> bool:
        """Whether the rights and the mount let the capture's maker write there."""
        try:
            found: bool = self._answer(kinds.WRITABLE, path, lambda source: source.is_writable(path))
        except OSError:
            return False
        return found

    def space_at(self, path: str) -> Space:
        """The free space on the file system of a path."""
        found: Space = self._answer(kinds.SPACE, path, lambda source: source.space_at(path))
        return found

    def fd_targets(self, *parts: object) -> list[bytes]:
        """Where every fd points."""
        return [target for _, target, _ in self.all_fds(*parts)]

    def fd_pairs(self, *parts: object) -> list[tuple[bytes, bytes]]:
        """The name of each fd, with where it points."""
        return [(name, target) for name, target, _ in self.all_fds(*parts)]

    def fd_links(self, *parts: object, wanted: tuple[bytes, ...] = (b"",)) -> list[FdLink]:
        """The fds whose target begins with one of `wanted`."""
        return [each for each in self.all_fds(*parts) if each[1] and each[1].startswith(wanted)]

    def all_fds(self, *parts: object) -> list[FdLink]:
        """All fds, those whose target cannot be read with an empty one."""
        path = self.path(*parts, "fd")
        return list(self._answer(kinds.FDS, path, lambda source: tuple(source.all_fds(*parts))))

    def part(self, path: str, offset: int, size: int, ask: Callable[[int, int], bytes] | None) -> bytes:
        """A part of a file; what was not read of it is asked for: ask(offset, size)."""
        if self._knows(kinds.FILE, path):  # as the counters are
            return self.read_path(path)[offset : offset + size]
        mark = self.clock.mark
        self._prove_here(path, mark)
        found = self._parts.read(path, offset, size, mark, ask)
        if found is None:
            found = implied(self.tape, kinds.RANGES, path, mark) or self._unknown()
        if isinstance(found, Failure):
            raise self._error(found, path)
        return bytes(found)

    def cached_pages(self, path: str, ask: Callable[[Any], int]) -> int:
        """How many pages of a held file are in the page cache."""
        found: int = self._answer(kinds.PAGES, path, ask)
        return found

    def _hold(self, path: str, opened: Callable[[ProcFS], HeldFile]) -> HeldFile:
        file = TapeFile(self, path, opened)
        self._answer(kinds.OPENED, path, lambda _: bool(file.source()))
        return file

    def _exists(self, path: str) -> bool:
        if self.source is None and not self._knows(kinds.LSTAT, path) and is_listed(self.tape, path, self.clock.mark):
            return True
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

    # How an answer is found, or asked for and kept

    def _knows(self, kind: str, key: str) -> bool:
        try:
            self.tape.find(kind, key, self.clock.mark)
        except KeyError:
            return False
        return True

    def _answer(self, kind: str, key: str, ask: Callable[[Any], Any]) -> Any:
        mark = self.clock.mark
        self._prove_here(key, mark)
        try:
            answer = self.tape.find(kind, key, mark)
        except KeyError:
            answer = self._recorded(kind, key, ask) if self.source is not None else self._derived(kind, key, mark)
        if isinstance(answer, Failure):
            raise self._error(answer, key)
        return answer

    def _prove_here(self, path: str, mark: int) -> None:
        """Raise FileNotFoundError for a process or thread that has ended before this mark."""
        if mark and self._departed.has(path, mark):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _derived(self, kind: str, key: str, mark: int) -> Any:
        found = implied(self.tape, kind, key, mark)
        return self._unknown() if found is None else found

    @staticmethod
    def _unknown() -> Failure:
        return Failure(errno.ENODATA, NOT_CAPTURED, is_refused=True, is_counted=True)

    def _error(self, failure: Failure, path: str) -> OSError:
        why = failure.why or os.strerror(failure.errno)
        if failure.is_counted:
            self.refused[path] = why
        return Refused(failure.errno, why, path) if failure.is_refused else OSError(failure.errno, why, path)

    def _recorded(self, kind: str, key: str, ask: Callable[[Any], Any]) -> Any:
        try:
            answer = self._put(kind, key, ask, self.source)
        except OSError as error:
            answer = self.failure_of(error, key)
        self.tape.keep(kind, key, self.shared(answer) if type(answer) is bytes else answer)
        return answer

    def _put(self, kind: str, key: str, ask: Callable[..., Any], *arguments: Any) -> Any:
        """ask(*arguments); a source that is patient may raise Hangs."""
        reads = self.source.kept if self.source is not None else None
        if isinstance(reads, PatientReads):
            return reads.ask(key, ask, *arguments, follows=kind == kinds.STAT)
        return ask(*arguments)

    def shared(self, data: bytes) -> bytes:
        """The same content, held once."""
        return self._shared.setdefault(data, data)

    def end_recording(self) -> None:
        """Let go of what only a recording needs, before the tape is redacted."""
        self._shared.clear()

    def failure_of(self, error: OSError, path: str) -> Failure:
        """An error of the source, as it is kept."""
        number = error.errno or errno.EIO
        is_refused = isinstance(error, PermissionError) and number not in (errno.EACCES, errno.EPERM)
        is_counted = isinstance(error, Hangs) or (self.source is not None and path in self.source.refused)
        return Failure(
            number, None if error.strerror == os.strerror(number) else error.strerror, is_refused, is_counted
        )

    def _record_untrusted(self, source: ProcFS, directory: str, name: str, limit_bytes: int) -> None:
        path = f"{directory}/{name}"
        try:
            found, data = self._put(kinds.UNTRUSTED, path, source.read_untrusted, directory, name, limit_bytes)
        except OSError as error:
            if error.errno != errno.EFBIG:  # that depends on the limit: the size is kept instead
                self.tape.keep(kinds.UNTRUSTED, path, self.failure_of(error, path))
                return
            self.tape.keep(kinds.UNTRUSTED, path, True)
            self.file_id_at(path)
            return
        self.tape.keep(kinds.UNTRUSTED, path, True)
        for kind, answer in ((kinds.LSTAT, found), (kinds.FILE, data)):
            if not self._knows(kind, path):
                self.tape.keep(kind, path, answer)

    def _first_names(self, source: ProcFS, path: str, most: int) -> list[str]:
        """Ask for the first names; where these are all, they are kept as such."""
        known = self.tape.answers[kinds.SOME][0].get(path)
        if known is not None and not isinstance(known, Failure) and len(known) >= most:
            return list(known[:most])
        try:
            names = tuple(self._put(kinds.SOME, path, source.names_at, path, most))
        except OSError as error:
            self.tape.keep(kinds.NAMES, path, self.failure_of(error, path))
        else:
            self.tape.keep(kinds.NAMES if len(names) < most else kinds.SOME, path, names)
            return list(names)
        return list(self._answer(kinds.NAMES, path, lambda _: ()))
