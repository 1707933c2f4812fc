"""Read the files of a .tar.gz or .tar that a stranger gave: into memory alone, plain files alone, within bounds."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.recorded.archive import ADLER_BASE, BLOCK_BYTES, byte_sum
from opskit.proc.user_files import GZIP, gunzip
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_FILES = 1 << 20
MOST_BYTES = 1 << 30
# Real captures come to 15 to 40 times their size. Below the free part any factor is taken.
_MOST_TIMES, _FREE_BYTES = 120, 32 << 20
_BYTES_A_FILE, _FREE_FILES = 16, 100_000  # of gzip data, at least; real captures have 50
_LONGEST_NAME_BYTES, _LARGEST_RECORD_BYTES, _MOST_TRAILING_BYTES = 4096, 64 << 10, 4 << 20
_FETCH_AGAIN = "fetch the file again"
_NOT_OURS = "a capture has plain files alone, so this file was changed; don't use it"
_OTHERS = {
    b"1": "a hard link", b"2": "a symbolic link", b"K": "a link", b"3": "a device", b"4": "a device", b"6": "a FIFO", b"S": "a sparse file",
    b"M": "a part of a file", b"V": "a volume label",
}  # fmt: skip
_PLAIN, _DIRECTORY, _LONG_NAME, _PAX, _PAX_OF_ALL = (b"0", b"\0", b"7"), b"5", b"L", b"x", b"g"
_OCTAL = re.compile(rb" {0,10}([0-7]{1,11})[ \0]{0,12}")
_PAX_RECORD = re.compile(rb"([1-9][0-9]{0,5}) ([^=\n]{1,255})=")
_ZEROS = b"\0" * BLOCK_BYTES


class _Bytes:
    """What was unpacked, and the place in it. `source`: its name in errors."""

    def __init__(self, source: str, raw: Iterable[bytes]) -> None:
        self.source = source
        self.data, self.at = b"", 0
        self._compressed_bytes = self._bytes = 0
        chunks = self._counted(raw)
        first = next(chunks, b"")
        self._is_gzip = first.startswith(GZIP)
        self._chunks = gunzip(first, chunks) if self._is_gzip else _again(first, chunks)

    def _counted(self, raw: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in raw:
            self._compressed_bytes += len(chunk)
            yield chunk

    def bad(self, problem: str, name: str | None = None) -> BadInput:
        """The error for a file that is no capture."""
        return BadInput(self.source, problem, found=name)

    def next(self) -> bytes:
        """The next chunk; empty at the end. Raises BadInput."""
        try:
            chunk = next(self._chunks, b"")
        except EOFError:
            raise self.bad(f"the gzip data end in the middle: it is incomplete; {_FETCH_AGAIN}") from None
        except zlib.error as error:
            raise self.bad(f"damaged gzip data ({error}); {_FETCH_AGAIN}") from None
        self._bytes += len(chunk)
        if self._bytes > MOST_BYTES:
            raise self.bad(f"unpacks to more than {MOST_BYTES >> 30} GiB, the most that is read; {_NOT_OURS}")
        if self._is_gzip and self._bytes > _FREE_BYTES + _MOST_TIMES * self._compressed_bytes:
            raise self.bad(f"unpacks to more than {_MOST_TIMES} times its size, as no capture does; don't use it")
        return chunk

    def may_have(self, files: int) -> bool:
        """Whether so many files may have been packed to what was read so far."""
        return not self._is_gzip or files <= _FREE_FILES + self._compressed_bytes // _BYTES_A_FILE

    def have(self, size: int) -> bool:
        """Have so many bytes from `at` on; whether there are."""
        left = len(self.data) - self.at
        if left >= size:
            return True
        parts = [self.data[self.at :]]
        while left < size and (chunk := self.next()):
            parts.append(chunk)
            left += len(chunk)
        self.data, self.at = b"".join(parts), 0
        return left >= size

    def take(self, size: int) -> bytes:
        """So many bytes, and go behind them and what fills their block. Raises BadInput."""
        if size > MOST_BYTES:
            raise self.bad(f"has a file of more than {MOST_BYTES >> 30} GiB, the most that is read; {_NOT_OURS}")
        filled = size + -size % BLOCK_BYTES
        if not self.have(filled):
            raise self.bad(f"the archive ends in the middle of a file: it is incomplete; {_FETCH_AGAIN}")
        start, self.at = self.at, self.at + filled
        return self.data[start : start + size]


def _again(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from chunks


def read_archive(source: str, raw: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each file. Raises BadInput for what is no .tar or .tar.gz, is damaged, or not made of plain files."""
    stream = _Bytes(source, raw)
    number, long_name = 0, ""
    while stream.have(BLOCK_BYTES):
        start = stream.at
        header = stream.data[start : start + BLOCK_BYTES]
        if header == _ZEROS:
            _check_end(stream)
            return
        stream.at = start + BLOCK_BYTES
        size = _size(stream, header, is_first=not number)
        number += 1
        if not stream.may_have(number):
            raise stream.bad(f"has {number:,} files, more than its size allows, as no capture does; don't use it")
        if number > MOST_FILES:
            raise stream.bad(f"has more than {MOST_FILES:,} files, the most that is read; {_NOT_OURS}")
        kind = header[156:157]
        if kind in _PLAIN:
            name = long_name or _name(header)
            long_name = ""
            yield _safe(stream, name), stream.take(size)
        elif kind == _DIRECTORY:
            _safe(stream, long_name or _name(header))
            long_name = ""
            stream.take(size)
        elif kind in (_LONG_NAME, _PAX, _PAX_OF_ALL):
            if size > _LARGEST_RECORD_BYTES:
                raise stream.bad(f"has a name or attributes of {size:,} bytes; {_NOT_OURS}")
            data = stream.take(size)
            if kind == _LONG_NAME:
                long_name = data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
            else:
                long_name = _path_in(stream, data, may_rename=kind == _PAX) or long_name
        else:
            what = _OTHERS.get(kind, f"an entry of the unknown type {kind!r}")
            raise stream.bad(f"has {what}; {_NOT_OURS}", long_name or _name(header))
    if not number:
        raise _no_archive(stream, stream.data[stream.at :])
    raise stream.bad(f"the archive ends in the middle: it is incomplete; {_FETCH_AGAIN}")


def _size(stream: _Bytes, header: bytes, *, is_first: bool) -> int:
    """The size of an entry's content, after the checks of its header."""
    written = _OCTAL.fullmatch(header, 148, 156)
    # The sum counts the checksum's own eight bytes as blanks.
    real = byte_sum(header[:148] + b" " * 8 + header[156:])
    if written is None or (int(written[1], 8) - real) % ADLER_BASE:  # a number: octal digits
        if is_first:
            raise _no_archive(stream, header)
        raise stream.bad(f"damaged: an entry's checksum is wrong; {_FETCH_AGAIN}")
    size = _OCTAL.fullmatch(header, 124, 136)
    if size is None:
        raise stream.bad(f"has an entry whose size is no number or above 8 GiB; {_NOT_OURS}")
    return int(size[1], 8)  # a number: octal digits


def _name(header: bytes) -> str:
    name = header[:100].partition(b"\0")[0]
    if header[345:346] != b"\0" and header[257:263] == b"ustar\0":
        name = header[345:500].partition(b"\0")[0] + b"/" + name
    return name.decode("utf-8", "surrogateescape")


def _safe(stream: _Bytes, name: str) -> str:
    """The name without `./`. Raises BadInput for one that leads elsewhere."""
    while name.startswith("./"):
        name = name[2:]
    if len(name) > _LONGEST_NAME_BYTES:
        raise stream.bad(f"has a name of {plural(len(name), 'character')}; {_NOT_OURS}", name)
    if name.startswith("/"):
        raise stream.bad(f"has an absolute name; {_NOT_OURS}", name)
    if "//" in name or "/." in name or name.startswith(".."):
        parts = name.rstrip("/").split("/")
        if ".." in parts:
            raise stream.bad(f"has a name that leads out of its directory; {_NOT_OURS}", name)
        if "" in parts or "." in parts[:-1]:
            raise stream.bad(f"has a name that is not in its simplest form; {_NOT_OURS}", name)
    if "\0" in name:
        raise stream.bad(f"has a name with a NUL; {_NOT_OURS}", name)
    return name


def _path_in(stream: _Bytes, data: bytes, *, may_rename: bool) -> str:
    """The path in a pax header's records; empty without one. Raises BadInput for what changes how the content is read."""
    at, path = 0, ""
    while at < len(data):
        found = _PAX_RECORD.match(data, at)
        end = at + int(found[1]) if found else 0  # a number: up to six digits
        if found is None or not found.end() < end <= len(data) or data[end - 1 : end] != b"\n":
            raise stream.bad(f"damaged: attributes (pax) that cannot be read; {_FETCH_AGAIN}")
        key = found[2]
        if key == b"path" and may_rename:
            path = data[found.end() : end - 1].decode("utf-8", "surrogateescape")
        elif key in (b"path", b"size", b"linkpath", b"hdrcharset") or key.startswith(b"GNU.sparse"):
            raise stream.bad(f"has attributes (pax) that change a file's {key.decode('utf-8', 'replace')}; {_NOT_OURS}")
        at = end
    return path


def _check_end(stream: _Bytes) -> None:
    """Raise BadInput unless two blocks of zeros end the archive, and zeros alone follow. Reads to the end: gzip's checksum stands there."""
    if not stream.have(2 * BLOCK_BYTES):
        raise stream.bad(f"the archive ends in the middle: it is incomplete; {_FETCH_AGAIN}")
    rest, size = stream.data[stream.at :], 0
    while rest:
        size += len(rest)
        if rest.count(0) != len(rest):
            raise stream.bad(f"has data behind the end of the archive; {_NOT_OURS}")
        if size > _MOST_TRAILING_BYTES:
            raise stream.bad(
                f"has more than {_MOST_TRAILING_BYTES >> 20} MiB behind the end of the archive; {_NOT_OURS}"
            )
        rest = stream.next()


def _no_archive(stream: _Bytes, start: bytes) -> BadInput:
    if not start:
        return stream.bad("is empty, not a capture; give a file that `opskit capture` wrote")
    return stream.bad(
        "is not a capture (a .tar.gz that `opskit capture` wrote); it begins with", repr(start[:16])[2:-1]
    )
