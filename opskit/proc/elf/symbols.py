"""The functions of an ELF file by address: .symtab and .dynsym, or of an image in memory the dynamic segment."""

from __future__ import annotations

import lzma
import struct
from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from opskit.proc.elf.dynamic import STRINGS, STRINGS_BYTES, dynamic_entries
from opskit.proc.elf.file import DYNSYM, SYMTAB, elf_of
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opskit.proc.elf.file import ElfFile, Read

_SYMBOL = struct.Struct("<IBBHQQ")
_MOST_SYMBOLS_BYTES, _MOST_NAMES_BYTES, _MOST_DEBUG_DATA_BYTES = 48 << 20, 16 << 20, 64 << 20
_LONGEST_NAME = 8192
_FUNCTIONS = frozenset((0, 2, 10))  # untyped (assembler), FUNC, IFUNC
_SYMBOLS = 6  # a tag of the dynamic segment
_MOST_OVERLAPS = 8  # how many functions may lie in one
_MOST_NAMES = 16  # of one function
_UNSIZED_BYTES = 4096  # how far a function without a size reaches at most: hand-written code
_RESERVED_SECTIONS = 0xFF00


class Source(NamedTuple):
    """A table of symbols: where it is, and its strings."""

    read: Read
    symbols_at: int
    size: int
    names_at: int
    names_size: int
    is_complete: bool


class Symbols:
    """The functions of some tables. Names are read when they are asked for."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._sources = tuple(sources)
        heads, starts, sizes = array("Q"), array("Q"), array("Q")
        self._ends = []  # of the tables in these
        kept: list[int] = []
        for source in self._sources:
            words = array("Q", _content(source))
            first = len(heads)
            heads += words[::3]
            starts += words[1::3]
            sizes += words[2::3]
            self._ends.append(len(heads))
            # The first word: name's offset, type and binding, visibility, section. Only defined functions count.
            # Without local functions it is unknown where one without a size ends: _init would get all that is behind it.
            kept += [
                number
                for number, head in enumerate(heads[first:], first)
                if head >> 32 & 15 in _FUNCTIONS
                and 0 < head >> 48 < _RESERVED_SECTIONS
                and starts[number]
                and (source.is_complete or sizes[number])
            ]
        kept.sort(key=starts.__getitem__)
        self._numbers = array("I", kept)
        self._starts = array("Q", [starts[number] for number in kept])
        self._sizes = array("Q", [sizes[number] for number in kept])
        self._names = array("I", [heads[number] & 0xFFFFFFFF for number in kept])

    def __len__(self) -> int:
        return len(self._starts)

    def begin(self, address: int) -> int | None:
        """Where the nearest function at or below an address begins."""
        end = bisect_right(self._starts, address)
        return self._starts[end - 1] if end else None

    def name(self, address: int) -> str | None:
        """The raw name of the function at an address, without a version; None between functions."""
        end = bisect_right(self._starts, address)
        nearest = self._starts[end - 1] if end else 0
        for _ in range(_MOST_OVERLAPS):
            if not end:
                break
            start = self._starts[end - 1]
            begin = bisect_left(self._starts, start, 0, end)
            group = range(begin, end)[:_MOST_NAMES]
            sized = [at for at in group if address < start + self._sizes[at]]
            if sized or (start == nearest and address < start + _UNSIZED_BYTES):
                found = self._best(sized or [at for at in group if not self._sizes[at]])
                if found is not None:
                    return found
            end = begin
        return None

    def _best(self, numbers: list[int]) -> str | None:
        """Of the names of one function the one with the fewest leading underscores: write, not __write."""
        names = [_name(self._sources[bisect_right(self._ends, self._numbers[at])], self._names[at]) for at in numbers]
        return min(filter(None, names), key=_rank, default=None)


def _rank(name: str) -> tuple[int, str]:
    # C++ and Rust names begin with one underscore, and no C name is better. The vdso's functions have libc's names as well.
    # __GI_write is glibc's own alias.
    if name.startswith(("_Z", "_R", "__vdso_")):
        return 0, name
    return 99 if name.startswith("__GI_") else 1 + len(name) - len(name.lstrip("_")), name


def complete_source(image: ElfFile) -> Source | None:
    """The table of all functions, also local ones; None where it was stripped."""
    return _section_source(image, SYMTAB)


def dynamic_source(image: ElfFile) -> Source | None:
    """The table of what other files may use."""
    return _section_source(image, DYNSYM) or next(_dynamic_source(image), None)


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
    source = dynamic_source(image)
    if source is None:
        return {}
    strings = source.read(source.names_at, min(source.names_size, _MOST_NAMES_BYTES))
    return {
        name.decode("latin-1"): value
        for at, _, _, _, value, _ in _SYMBOL.iter_unpack(_content(source))
        if (name := strings[at : strings.find(b"\0", at)]) in wanted
    }


def _section_source(image: ElfFile, kind: int) -> Source | None:
    """The table in the section of this kind."""
    sections = image.sections
    section = next((each for each in sections if each.kind == kind and each.link < len(sections)), None)
    if section is None:
        return None
    strings = sections[section.link]
    return Source(image.read_at, section.offset, section.size, strings.offset, strings.size, kind == SYMTAB)


def _content(source: Source) -> bytes:
    data = source.read(source.symbols_at, min(source.size, _MOST_SYMBOLS_BYTES))
    return data[: len(data) // _SYMBOL.size * _SYMBOL.size]


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
    """The table in the dynamic segment, which does not have its size: linkers put the strings behind the symbols."""
    tags = dict(dynamic_entries(image))
    symbols_at, names_at, size = (tags.get(tag, 0) for tag in (_SYMBOLS, STRINGS, STRINGS_BYTES))
    shift = image.bias if symbols_at >= image.bias else 0  # the dynamic linker has made them absolute
    symbols_at, names_at = symbols_at - shift, names_at - shift
    if 0 < symbols_at < names_at:
        yield Source(image.read, symbols_at, names_at - symbols_at, names_at, size, is_complete=False)
