"""Separate files with debugging symbols, as gdb finds them: by build id, or by the name in .gnu_debuglink."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from opskit.proc.elf.file import open_elf
from opskit.proc.fs import optional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.proc.elf.file import ElfFile
    from opskit.proc.fs import ProcFS

_DIRECTORY = "/usr/lib/debug"
_CHUNK_BYTES, _MOST_CHECKED_BYTES = 1 << 20, 64 << 20


def debug_file(fs: ProcFS, pid: int, image: ElfFile, path: str) -> ElfFile | None:
    """The file with the symbols of the image that is mapped from `path`, in the process's mount namespace."""
    link, checksum = _link(image)
    for candidate in _candidates(image.build_id, link, path.rpartition("/")[0]):
        inside = optional(fs.inside, pid, candidate)
        found = open_elf(fs, inside) if inside is not None else None
        if found is not None and _belongs(found, image, checksum):
            return found
    return None


def _candidates(build_id: bytes | None, link: str, directory: str) -> Iterator[str]:
    if build_id:
        name = build_id.hex()
        yield f"{_DIRECTORY}/.build-id/{name[:2]}/{name[2:]}.debug"
    if link and "/" not in link:
        yield f"{directory}/{link}"
        yield f"{directory}/.debug/{link}"
        yield f"{_DIRECTORY}{directory}/{link}"


def _link(image: ElfFile) -> tuple[str, int | None]:
    """The name and the checksum in .gnu_debuglink: a string, padding to four bytes, a CRC-32."""
    section = image.section(".gnu_debuglink")
    data = image.content(section, 4096) if section else b""
    name, end, _ = data.partition(b"\0")
    at = len(name) + 4 & ~3
    if not end or len(data) < at + 4:
        return "", None
    return name.decode("utf-8", "surrogateescape"), int.from_bytes(data[at : at + 4], "little")


def _belongs(found: ElfFile, image: ElfFile, checksum: int | None) -> bool:
    if found.build_id is not None and image.build_id is not None:
        return found.build_id == image.build_id
    return checksum is not None and _checksum(found) == checksum


def _checksum(image: ElfFile) -> int | None:
    """The CRC-32 of a file; None where it is too large to be read for that."""
    checksum = 0
    for at in range(0, _MOST_CHECKED_BYTES, _CHUNK_BYTES):
        chunk = image.read_at(at, _CHUNK_BYTES)
        checksum = zlib.crc32(chunk, checksum)
        if len(chunk) < _CHUNK_BYTES:
            return checksum
    return None
