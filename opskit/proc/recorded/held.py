"""Files that are read in parts, such as /proc/PID/mem: which parts were read when the capture was made, and what they held."""

from __future__ import annotations

import errno
from bisect import bisect_right, insort
from typing import TYPE_CHECKING, Any

from opskit.proc.held_file import HeldFile
from opskit.proc.recorded.tape import RANGES, Failure, Tape

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.proc.fs import ProcFS
    from opskit.proc.recorded.fs import TapeFS

_MEMORY = "/mem"


class TapeFile(HeldFile):
    """A captured file of which parts are read. While a capture is made the source's is opened where a part is missing."""

    def __init__(self, fs: TapeFS, path: str, opened: Callable[[ProcFS], HeldFile]) -> None:
        super().__init__(-1)
        self._fs, self._path, self._open = fs, path, opened
        self._source: HeldFile | None = None
        self._is_closed = False

    def source(self) -> HeldFile:
        """The same file of the source."""
        if self._source is None:
            if self._fs.source is None:
                raise OSError(errno.EBADF, "not in the capture", self._path)
            self._source = self._open(self._fs.source)
        return self._source

    def read_at(self, offset: int, size: int) -> bytes:
        """A part of it, fewer bytes where what was read ends. Raises OSError."""
        if self._is_closed:
            raise OSError(errno.EBADF, "it is closed", self._path)
        ask = None if self._fs.source is None else lambda at, most: self.source().read_at(at, most)
        return self._fs.part(self._path, offset, size, ask)

    def cached_pages(self) -> int:
        """How many of its pages are in the page cache. Raises OSError."""
        return self._fs.cached_pages(self._path, lambda _: self.source().cached_pages())

    def close(self) -> None:
        """Reads raise OSError from now on."""
        self._is_closed = True
        if getattr(self, "_source", None) is not None:
            self._source.close()  # type: ignore[union-attr]
            self._source = None


class Parts:
    """The parts of files on a tape: at each mark those that were read then, otherwise those of the marks before."""

    def __init__(self, tape: Tape, failure: Callable[[OSError, str], Failure]) -> None:
        """`failure`: what is kept of an error about a path."""
        self._tape, self._failure = tape, failure
        self._starts: dict[tuple[int, str], list[int]] = {}

    def read(
        self, path: str, offset: int, size: int, mark: int, ask: Callable[[int, int], bytes] | None
    ) -> bytes | Failure | None:
        """At most `size` bytes; None: none was read there. What is missing is asked for and kept: ask(offset, size).

        A process's memory is asked again at a later mark: what is the same in two looks was read twice.
        """
        first = mark if ask is not None and path.endswith(_MEMORY) else 0
        found = bytearray()
        while len(found) < size:
            at, left = offset + len(found), size - len(found)
            part = self._known(path, at, mark, first)
            if part is None and ask is not None:
                part = self._asked(path, at, left, ask, first)
            if part is None or isinstance(part, Failure):
                return bytes(found) if found else part
            if not part:
                break
            found += part[:left]
        return bytes(found)

    @property
    def _by_mark(self) -> list[dict[str, Any]]:
        """Of a capture that was loaded they are read when they are first asked for."""
        return self._tape.answers[RANGES]

    def _known(self, path: str, at: int, mark: int, first: int) -> bytes | Failure | None:
        """What was read from there on, at one of these marks, empty at the end of the file."""
        for place in range(min(mark, len(self._by_mark) - 1), first - 1, -1):
            parts = self._by_mark[place].get(path)
            if isinstance(parts, Failure):
                return parts
            if parts is None:
                continue
            starts = self._sorted(place, path, parts)
            index = bisect_right(starts, at) - 1
            if index < 0:
                continue
            start = starts[index]
            part = parts[start]
            if at == start:
                return part if isinstance(part, Failure) else bytes(part)
            if not isinstance(part, Failure) and at < start + len(part):
                return bytes(part[at - start :])
        return None

    def _asked(self, path: str, at: int, size: int, ask: Callable[[int, int], bytes], mark: int) -> bytes | Failure:
        while len(self._by_mark) <= mark:
            self._by_mark.append({})
        parts = self._by_mark[mark].setdefault(path, {})
        starts = self._sorted(mark, path, parts)
        following = bisect_right(starts, at)
        if following < len(starts):
            size = min(size, starts[following] - at)
        answer: bytes | Failure
        try:
            answer = ask(at, size)
        except OSError as error:
            answer = self._failure(error, path)
        self._keep(parts, starts, at, answer)
        if not isinstance(answer, Failure) and 0 < len(answer) < size:
            self._keep(parts, starts, at + len(answer), b"")
        return answer

    @staticmethod
    def _keep(parts: dict[int, bytes | Failure], starts: list[int], at: int, answer: bytes | Failure) -> None:
        if at not in parts:
            insort(starts, at)
        parts[at] = answer

    def _sorted(self, mark: int, path: str, parts: dict[int, bytes | Failure]) -> list[int]:
        starts = self._starts.get((mark, path))
        if starts is None or len(starts) != len(parts):
            starts = self._starts[mark, path] = sorted(parts)
        return starts
