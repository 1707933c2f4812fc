"""Write the lines of a log into several files, one for each log and tag, in bounded memory: lines wait in a scratch file.

A file has the header lines of its log and its tag's own lines, byte for byte and in order.
"""

from __future__ import annotations

import os
import re
from array import array
from typing import TYPE_CHECKING, BinaryIO

from opskit.actions import outfile
from opskit.errors import CannotWrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]")
_STEM_CHARACTERS, _TAG_CHARACTERS = 80, 80
_WRITE_BYTES = 1 << 20
_SUFFIX = ".hdr"
_NO_TAG = "untagged"


class _Part:
    """The lines of a tag: their places in the scratch file."""

    __slots__ = ("header", "lengths", "offsets")

    def __init__(self) -> None:
        self.header: Sequence[bytes] = ()
        self.offsets, self.lengths = array("Q"), array("Q")


class Splitter:
    """Takes lines, and writes all files at the end, into a directory that is made here. Raises CannotWrite."""

    def __init__(self, directory: str, scratch: Callable[[], BinaryIO]) -> None:
        outfile.make_directory(directory, "--split")
        self._directory = directory
        try:
            self._file = scratch()
        except OSError as error:
            raise self._no_scratch(error) from None
        self._end = 0
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._parts: dict[tuple[str, str | None], _Part] = {}

    def add(self, log: str, tag: str | None, header: Sequence[bytes], line: bytes) -> None:
        """Take a line of a log. `header`: the header lines so far; those that are new since the tag's last line come before it."""
        part = self._parts.get((log, tag))
        if part is None:
            part = self._parts[log, tag] = _Part()
        if header is not part.header:
            same = next((at for at, pair in enumerate(zip(header, part.header)) if pair[0] != pair[1]), None)
            for each in header[min(len(header), len(part.header)) if same is None else same :]:
                self._put(part, each)
            part.header = header
        self._put(part, line)

    def write(self) -> list[str]:
        """Write the files; their names, in the order of the first lines."""
        self._flush()
        taken = {self._identity(log) for log, _ in self._parts}
        names: set[str] = set()
        written = []
        for (log, tag), part in self._parts.items():
            path = self._path(log, tag, names, taken)
            outfile.write_file(path, self._lines(part))
            written.append(path)
        self._file.close()
        return written

    def _put(self, part: _Part, line: bytes) -> None:
        if not line.endswith(b"\n"):
            line += b"\n"  # the last line of a file
        offsets, lengths = part.offsets, part.lengths
        if offsets and offsets[-1] + lengths[-1] == self._end:
            lengths[-1] += len(line)
        else:
            offsets.append(self._end)
            lengths.append(len(line))
        self._end += len(line)
        self._waiting.append(line)
        self._waiting_bytes += len(line)
        if self._waiting_bytes >= _WRITE_BYTES:
            self._flush()

    def _flush(self) -> None:
        try:
            view = memoryview(b"".join(self._waiting))
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            raise self._no_scratch(error) from None
        self._waiting, self._waiting_bytes = [], 0

    def _no_scratch(self, error: OSError) -> CannotWrite:
        why = f"cannot write a temporary file: {error.strerror}"
        return CannotWrite(f"--split {self._directory}: {why}; free some space, or set TMPDIR")

    def _lines(self, part: _Part) -> Iterator[bytes]:
        for offset, length in zip(part.offsets, part.lengths):
            self._file.seek(offset)
            while length > 0:
                data = self._file.read(min(length, _WRITE_BYTES))
                if not data:
                    raise OSError("the temporary file is shorter than what was written to it")
                length -= len(data)
                yield data

    def _path(self, log: str, tag: str | None, names: set[str], taken: set[tuple[int, int] | None]) -> str:
        """A free name, and never that of a log that was read."""
        stem = file_name(log, tag)
        number = 1
        while True:
            name = stem + (f"-{number}" if number > 1 else "") + _SUFFIX
            path = os.path.join(self._directory, name)
            if name not in names and (self._identity(path) or 0) not in taken:
                names.add(name)
                return path
            number += 1

    @staticmethod
    def _identity(path: str) -> tuple[int, int] | None:
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            return None
        return found.st_dev, found.st_ino


def file_name(log: str, tag: str | None) -> str:
    """`throttle.READ-rt` of the log throttle.hdr.gz: letters, digits and `._+-`, never a path; a changed tag has a checksum."""
    base = log.rstrip("/").rpartition("/")[2]
    for ending in (".gz", ".hdr", ".hlog", ".log"):
        base = base.removesuffix(ending)
    stem = _UNSAFE.sub("_", base).lstrip(".-")[:_STEM_CHARACTERS] or "log"
    if tag is None:
        return f"{stem}.{_NO_TAG}"
    safe = _UNSAFE.sub("_", tag)[:_TAG_CHARACTERS]
    if safe != tag or not tag or tag == _NO_TAG or safe.startswith("."):
        import zlib

        safe = f"{safe.lstrip('.')}-{zlib.crc32(tag.encode('utf-8', 'surrogateescape')):08x}"
    return f"{stem}.{safe.lstrip('-')}"
