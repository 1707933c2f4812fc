"""What a shared library needs from others (elf(5), DT_NEEDED, .dynsym): its libraries, its C library, its symbols."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Literal

from opskit.proc.elf.file import DYNAMIC, DYNSYM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.proc.elf.file import ElfFile

Libc = Literal["glibc", "musl"]

_INTERPRETER = 3
_NEEDED, STRINGS, STRINGS_BYTES = 1, 5, 10  # tags
_ENTRY, _SYMBOL = struct.Struct("<QQ"), struct.Struct("<IBBHQQ")
_MOST_ENTRIES, _MOST_SYMBOLS = 4096, 1 << 18
_MOST_STRINGS_BYTES, _LONGEST_PATH = 16 << 20, 4096
_WEAK, _UNDEFINED = 2, 0
_VERSION = re.compile(rb"GLIBC_[0-9][0-9.]{0,15}(?=\0)")


def needed(image: ElfFile) -> tuple[str, ...]:
    """The names of the libraries that it needs: `libc.so.6`."""
    entries = list(dynamic_entries(image))
    strings = _strings(image, dict(entries))
    return tuple(_string(strings, value).decode("latin-1") for tag, value in entries if tag == _NEEDED)


def libc_of(image: ElfFile) -> Libc | None:
    """The C library that it was linked with, by DT_NEEDED and its interpreter; None: neither of the two."""
    interpreter = image.segment(_INTERPRETER)
    path = image.read_at(interpreter.offset, min(interpreter.size, _LONGEST_PATH)) if interpreter else b""
    names = (*needed(image), path.rpartition(b"/")[2].rstrip(b"\0").decode("latin-1"))
    if any(name == "libc.so" or name.startswith(("libc.musl-", "ld-musl-")) for name in names):
        return "musl"
    return "glibc" if any(name == "libc.so.6" or name.startswith("ld-linux") for name in names) else None


def glibc_versions(image: ElfFile) -> frozenset[bytes]:
    """The versions of glibc's interface that it names: those that a library needs, or that libc.so.6 has."""
    return frozenset(_VERSION.findall(_strings(image, dict(dynamic_entries(image)))))


def symbols(image: ElfFile, *, defined: bool) -> frozenset[bytes]:
    """The names that it defines for others; with `defined` False those that it needs, without the weak ones."""
    table = next((each for each in image.sections if each.kind == DYNSYM), None)
    if table is None or table.link >= len(image.sections):
        return frozenset()
    strings = image.content(image.sections[table.link], _MOST_STRINGS_BYTES)
    data = image.content(table, _MOST_SYMBOLS * _SYMBOL.size)
    return frozenset(
        _string(strings, name)
        for name, info, _, section, _, _ in _SYMBOL.iter_unpack(data[: len(data) // _SYMBOL.size * _SYMBOL.size])
        if name and (section != _UNDEFINED if defined else section == _UNDEFINED and info >> 4 != _WEAK)
    )


def dynamic_entries(image: ElfFile) -> Iterator[tuple[int, int]]:
    """The tags and values of the dynamic segment."""
    segment = image.segment(DYNAMIC)
    if segment is not None:
        data = image.read(segment.address, min(segment.size, _MOST_ENTRIES * _ENTRY.size))
        yield from _ENTRY.iter_unpack(data[: len(data) // _ENTRY.size * _ENTRY.size])


def _strings(image: ElfFile, entries: dict[int, int]) -> bytes:
    return image.read(entries.get(STRINGS, 0), min(entries.get(STRINGS_BYTES, 0), _MOST_STRINGS_BYTES))


def _string(strings: bytes, at: int) -> bytes:
    return strings[at : at + 256].partition(b"\0")[0]
