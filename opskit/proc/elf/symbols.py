"""The functions of an ELF file by address: .symtab and .dynsym, or what the dynamic segment tells of an image in memory."""

from __future__ import annotations

import lzma
import struct
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

from opskit.proc.elf.file import DYNAMIC, DYNSYM, SYMTAB, elf_of
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opskit.proc.elf.file import ElfFile, Read

_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC_ENTRY = struct.Struct("<QQ")
_MOST_SYMBOLS_BYTES, _MOST_NAMES_BYTES, _MOST_DEBUG_DATA_BYTES = 96 << 20, 16 << 20, 64 << 20
_LONGEST_NAME = 8192
_FUNCTIONS = frozenset((0, 2, 10))  # untyped (assembler), FUNC, IFUNC
_STRTAB, _SYMTAB, _STRSZ = 5, 6, 10  # tags of the dynamic segment
_MOST_OVERLAPS = 8  # how far back a function is sought that goes on behind others


class Source(NamedTuple):
    """A table of symbols: where it is, and its strings."""

    read: Read
    symbols_at: int
    size: int
    names_at: int
    names_size: int


class Symbols:
    """The functions of some tables. Names are read when they are asked for."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._sources = tuple(sources)
        found: list[tuple[int, int, int, int]] = []
        for number, source in enumerate(self._sources):
            found += _functions(source, number)
        found.sort()
        self._starts = array("Q", [start for start, _, _, _ in found])
        self._sizes = array("Q", [size for _, size, _, _ in found])
        self._sources_of = bytes(number for _, _, number, _ in found)
        self._names = array("I", [name for _, _, _, name in found])

    def __len__(self) -> int:
        return len(self._starts)

    def name(self, address: int) -> str | None:
        """The raw name of the function at an address, without a version; None between functions."""
        last = bisect_right(self._starts, address) - 1
        for at in range(last, max(last - _MOST_OVERLAPS, -1), -1):
            start, size = self._starts[at], self._sizes[at]
            if address < start + size or (not size and start == self._starts[last]):
                return self._best(start, at)
        return None

    def _best(self, start: int, last: int) -> str | None:
        """Of the names of one function the one with the fewest leading underscores: write, not __write."""
        names = []
        for at in range(last, max(last - _MOST_OVERLAPS, -1), -1):
            if self._starts[at] != start or (self._sizes[last] and not self._sizes[at]):
                break
            name = _name(self._sources[self._sources_of[at]], self._names[at])
            if name:
                names.append(name)
        return min(names, key=_rank, default=None)


def _rank(name: str) -> tuple[int, str]:
    # C++ and Rust names begin with one underscore, and no C name is better.
    return 0 if name.startswith(("_Z", "_R")) else len(name) - len(name.lstrip("_")), name


def symbol_sources(image: ElfFile) -> list[Source]:
    """The tables of a file, the complete one first."""
    found = [_section_source(image, SYMTAB), _section_source(image, DYNSYM)]
    return [each for each in found if each is not None] or [*_dynamic_source(image)]


def debug_data(image: ElfFile) -> ElfFile | None:
    """The small ELF file in .gnu_debugdata, with the symbols of local functions: Fedora's and its relatives' libraries."""
    section = image.section(".gnu_debugdata")
    if section is None:
        return None
    try:
        data = lzma.LZMADecompressor(memlimit=_MOST_DEBUG_DATA_BYTES).decompress(
            image.content(section, _MOST_DEBUG_DATA_BYTES), _MOST_DEBUG_DATA_BYTES
        )
    except (lzma.LZMAError, EOFError):
        return None
    return elf_of(data)


def dynamic_symbols(image: ElfFile, wanted: frozenset[bytes]) -> dict[str, int]:
    """The wanted names among the dynamic symbols, and their addresses. Builds no table."""
    source = _section_source(image, DYNSYM) or next(_dynamic_source(image), None)
    if source is None:
        return {}
    strings = source.read(source.names_at, min(source.names_size, _MOST_NAMES_BYTES))
    return {
        name.decode("latin-1"): value
        for at, _, _, _, value, _ in _entries(source)
        if (name := strings[at : strings.find(b"\0", at)]) in wanted
    }


def _section_source(image: ElfFile, kind: int) -> Source | None:
    """The table in the section of this kind."""
    sections = image.sections
    section = next((each for each in sections if each.kind == kind and each.link < len(sections)), None)
    if section is None:
        return None
    strings = sections[section.link]
    return Source(image.read_at, section.offset, section.size, strings.offset, strings.size)


def _entries(source: Source) -> Iterator[tuple[int, ...]]:
    """Name's offset, type and binding, visibility, section, value, size."""
    data = source.read(source.symbols_at, min(source.size, _MOST_SYMBOLS_BYTES))
    return _SYMBOL.iter_unpack(data[: len(data) // _SYMBOL.size * _SYMBOL.size])


def _functions(source: Source, number: int) -> Iterator[tuple[int, int, int, int]]:
    """The defined functions: start, size, number of the source, name's offset."""
    for name, info, _, section, start, size in _entries(source):
        if info & 15 in _FUNCTIONS and 0 < section < 0xFF00 and start:
            yield start, size, number, name


def _name(source: Source, at: int) -> str:
    if at >= source.names_size:
        return ""
    data = b""
    for size in (128, _LONGEST_NAME):
        data, end, _ = source.read(source.names_at + at, min(size, source.names_size - at)).partition(b"\0")
        if end:
            break
    return data.partition(b"@")[0].decode("utf-8", "replace")


def _dynamic_source(image: ElfFile) -> Iterator[Source]:
    """The table in the dynamic segment. Its size is not told: linkers put the strings behind the symbols."""
    segment = image.segment(DYNAMIC)
    if segment is None:
        return
    data = image.read(segment.address, min(segment.size, 1 << 16))
    tags = dict(_DYNAMIC_ENTRY.iter_unpack(data[: len(data) // 16 * 16]))
    symbols_at, names_at, size = (tags.get(tag, 0) for tag in (_SYMTAB, _STRTAB, _STRSZ))
    shift = image.bias if symbols_at >= image.bias else 0  # the dynamic linker has made them absolute
    symbols_at, names_at = symbols_at - shift, names_at - shift
    if 0 < symbols_at < names_at:
        yield Source(image.read, symbols_at, names_at - symbols_at, names_at, size)
