"""The plain files of an sos archive, read into memory within bounds: .tar, .tar.gz or .tar.xz."""

from __future__ import annotations

import lzma
import tarfile
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.user_files import GZIP, capture_chunks, gunzip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_BYTES, MOST_FILES, LARGEST_FILE_BYTES = 2 << 30, 400_000, 64 << 20
_XZ, _XZ_MEMORY_BYTES = b"\xfd7zXZ\0", 256 << 20
_DAMAGED = (lzma.LZMAError, zlib.error, EOFError, ValueError, OverflowError)
_WANTED = ("proc/", "sys/", "etc/", "sos_commands/", "version.txt")


class _Stream:
    """Decompressed bytes as tarfile reads them. Raises BadInput above the bound."""

    def __init__(self, source: str, chunks: Iterable[bytes]) -> None:
        self._source, self._chunks = source, iter(chunks)
        self._waiting, self._passed = bytearray(), 0

    def read(self, size: int) -> bytes:
        """Up to so many bytes."""
        while len(self._waiting) < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._waiting += chunk
            self._passed += len(chunk)
            if self._passed > MOST_BYTES:
                raise BadInput(self._source, f"more than {MOST_BYTES >> 30} GiB unpacked, the most that is read")
        taken = bytes(self._waiting[:size])
        del self._waiting[:size]
        return taken


def archive_files(path: str) -> Iterator[tuple[str, bytes]]:
    """(path below the report's directory, content) of each file that is used. Raises BadInput."""
    stream = _Stream(path, _unpacked(capture_chunks(path)))
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:  # type: ignore[call-overload]
            for number, member in enumerate(archive):
                archive.members.clear()
                if number > MOST_FILES:
                    raise BadInput(path, f"more than {MOST_FILES:,} files, the most that is read")
                name = _below(member.name)
                if name is None or not member.isreg() or not 0 <= member.size <= LARGEST_FILE_BYTES:
                    continue
                held = archive.extractfile(member)
                if held is not None:
                    yield name, held.read()
    except (tarfile.TarError, *_DAMAGED) as error:
        raise BadInput(path, f"not a readable sos report: {error}") from None


def first_name(path: str) -> str:
    """The first path in an archive; empty where it is none. Raises BadInput where the file cannot be read."""
    stream = _Stream(path, _unpacked(capture_chunks(path)))
    with suppress(tarfile.TarError, *_DAMAGED), tarfile.open(fileobj=stream, mode="r|") as archive:  # type: ignore[call-overload]
        first = archive.next()
        return "" if first is None else str(first.name)
    return ""


def _below(name: str) -> str | None:
    """The path below the report's own directory; None: not used, or a path that leads elsewhere."""
    parts = name.split("/")
    if ".." in parts or name.startswith("/"):
        return None
    for place in range(min(len(parts), 3)):
        rest = "/".join(parts[place:])
        if rest.startswith(_WANTED):
            return rest
    return None


def _unpacked(raw: Iterator[bytes]) -> Iterator[bytes]:
    first = next(raw, b"")
    if first.startswith(_XZ):
        squeezed = lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES)
        chunk: bytes | None = first
        while chunk is not None and not squeezed.eof:
            yield squeezed.decompress(chunk, 1 << 20)
            while not squeezed.eof and not squeezed.needs_input:
                yield squeezed.decompress(b"", 1 << 20)
            chunk = next(raw, None)
    elif first.startswith(GZIP):
        yield from gunzip(first, raw)
    else:
        yield first
        yield from raw
