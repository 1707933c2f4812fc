"""ELF files (elf(5)): 64-bit, little-endian. Whoever built the file may be hostile: every count, offset and size is bounded.

A part that is cut off or makes no sense is empty or None; nothing here raises.
"""

from __future__ import annotations

import struct
from functools import cached_property
from typing import TYPE_CHECKING

from opskit.proc.fs import optional
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.proc.fs import ProcFS
    from opskit.proc.memory import Memory

    # Offset in the file, or address, and size; fewer bytes at its end, never an error.
    Read = Callable[[int, int], bytes]

X86_64, AARCH64 = 62, 183
LOAD, DYNAMIC, NOTE, EH_FRAME_HDR = 1, 2, 4, 0x6474E550
SYMTAB, NOBITS, DYNSYM = 2, 8, 11
COMPRESSED = 1 << 11
_HEADER = struct.Struct("<6s10xHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NOTE = struct.Struct("<III")
_MOST_SEGMENTS, _MOST_SECTIONS = 256, 1 << 16
_MOST_NAMES_BYTES, _MOST_NOTES_BYTES = 4 << 20, 1 << 16
_ADDRESSES = 1 << 63
_EXECUTABLE = 1
_BUILD_ID = 3


class Segment(NamedTuple):
    """A program header. `address`: as linked; `size`: of its bytes in the file; `memory_size`: with the zeros behind them."""

    kind: int
    flags: int
    offset: int
    address: int
    size: int
    memory_size: int = 0


class Section(NamedTuple):
    """A section header. `link`: the number of a section that belongs to it, such as its strings."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int


class ElfFile:
    """An ELF file, or one loaded into memory. Addresses are those of the linker; `bias` is added to them in memory."""

    def __init__(
        self, read_at: Read, memory: Memory | None = None, begin: int = 0, *, has_sections: bool = True
    ) -> None:
        """`memory`: where it is loaded, at `begin`; otherwise its bytes are found by the segments."""
        self.read_at, self._memory = read_at, memory
        header = read_at(0, _HEADER.size)
        found = _HEADER.unpack(header) if len(header) == _HEADER.size else (b"",) * 14
        self.is_valid = found[0] == b"\x7fELF\x02\x01"
        self.machine: int = found[2] if self.is_valid else 0
        self._sections_at = (
            (found[6], found[11], found[12], found[13]) if self.is_valid and has_sections else (0, 0, 0, 0)
        )
        self.segments = _segments(read_at, found[5], found[9], found[10]) if self.is_valid else ()
        self._loads = tuple(each for each in self.segments if each.kind == LOAD)
        self.bias = 0 if memory is None else begin - self.begin

    # A method, not an attribute: an object that refers to itself would keep its file open until the garbage collector runs.
    def read(self, address: int, size: int) -> bytes:
        """At most `size` bytes from an address on."""
        if self._memory is not None:
            return self._memory.read(self.bias + address, size)
        for each in self._loads:
            begin = address - each.address
            if 0 <= begin < each.size:
                return self.read_at(each.offset + begin, min(size, each.size - begin))
        return b""

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All sections in their order; none where the file has no table of them."""
        at, size, count, names_index = self._sections_at
        if not at or size != _SECTION.size:
            return ()
        first = self.read_at(at, size)
        if len(first) == size:  # large counts are in the first section
            count = count or _SECTION.unpack(first)[5]
        table = self.read_at(at, size * min(count, _MOST_SECTIONS))
        found = list(_SECTION.iter_unpack(table[: len(table) // size * size]))
        if names_index == 0xFFFF and found:
            names_index = found[0][6]
        strings = found[names_index] if names_index < len(found) else None
        names = self.read_at(strings[4], min(strings[5], _MOST_NAMES_BYTES)) if strings else b""
        return tuple(
            Section(_string(names, name), kind, flags, address, offset, length, link)
            for name, kind, flags, address, offset, length, link, _, _, _ in found
        )

    def section(self, name: str) -> Section | None:
        """The first section of this name that has bytes in the file."""
        return next((each for each in self.sections if each.name == name and each.kind != NOBITS), None)

    def content(self, section: Section, most_bytes: int) -> bytes:
        """The bytes of a section, as they are in the file."""
        return self.read_at(section.offset, min(section.size, most_bytes)) if section.kind != NOBITS else b""

    def segment(self, kind: int) -> Segment | None:
        """The first segment of this kind."""
        return next((each for each in self.segments if each.kind == kind), None)

    def address_of(self, offset: int) -> int | None:
        """The address of a place in the file; code is preferred where two segments have the same bytes."""
        found = [each for each in self._loads if each.offset <= offset < each.offset + each.size]
        best = next((each for each in found if each.flags & _EXECUTABLE), found[0] if found else None)
        return None if best is None else offset - best.offset + best.address

    @cached_property
    def begin(self) -> int:
        """The address of the first loaded byte, rounded down to a page."""
        return min((each.address for each in self._loads), default=0) & ~0xFFF

    @cached_property
    def end(self) -> int:
        """The address behind the last loaded byte, its .bss included."""
        return max((each.address + each.memory_size for each in self._loads), default=0)

    @cached_property
    def build_id(self) -> bytes | None:
        """The id in the note that the linker writes (`ld --build-id`)."""
        section = self.section(".note.gnu.build-id")
        notes = [self.content(section, _MOST_NOTES_BYTES)] if section else []
        notes += [
            self.read(each.address, min(each.size, _MOST_NOTES_BYTES)) for each in self.segments if each.kind == NOTE
        ]
        return next((found for data in notes for found in _build_ids(data)), None)


def open_elf(fs: ProcFS, path: str) -> ElfFile | None:
    """The ELF file at a path, kept open; None where it cannot be read, or is none."""
    held = optional(fs.hold_regular, path)
    if held is None:
        return None

    def read_at(offset: int, size: int) -> bytes:
        if not 0 <= offset < _ADDRESSES - size or size <= 0:
            return b""
        found: bytes = optional(held.read_at, offset, size, default=b"")
        return found

    return _valid(ElfFile(read_at))


def elf_in_memory(memory: Memory, begin: int, *, is_whole: bool = False) -> ElfFile | None:
    """The ELF file that is loaded at `begin`. `is_whole`: all of it, with its sections, as the vdso is."""
    return _valid(ElfFile(lambda offset, size: memory.read(begin + offset, size), memory, begin, has_sections=is_whole))


def elf_of(data: bytes) -> ElfFile | None:
    """The ELF file of these bytes."""
    return _valid(ElfFile(lambda offset, size: data[offset : offset + size] if offset >= 0 < size else b""))


def _valid(image: ElfFile) -> ElfFile | None:
    return image if image.is_valid else None


def _segments(read_at: Read, at: int, size: int, count: int) -> tuple[Segment, ...]:
    if size != _SEGMENT.size:
        return ()
    table = read_at(at, size * min(count, _MOST_SEGMENTS))
    return tuple(
        Segment(kind, flags, offset, address, in_file, in_memory)
        for kind, flags, offset, address, _, in_file, in_memory, _ in _SEGMENT.iter_unpack(
            table[: len(table) // size * size]
        )
    )


def _build_ids(notes: bytes) -> Iterator[bytes]:
    at = 0
    while at + _NOTE.size <= len(notes):
        name_bytes, id_bytes, kind = _NOTE.unpack_from(notes, at)
        name_at = at + _NOTE.size
        id_at = name_at + (name_bytes + 3 & ~3)
        if kind == _BUILD_ID and notes[name_at : name_at + name_bytes] == b"GNU\0" and 0 < id_bytes <= 64:
            yield notes[id_at : id_at + id_bytes]
        at = id_at + (id_bytes + 3 & ~3)


def _string(strings: bytes, at: int) -> str:
    return strings[at : at + 256].partition(b"\0")[0].decode("latin-1")
