"""Call frame information of an ELF file: .eh_frame by the search table in .eh_frame_hdr, or .debug_frame.

Linux Standard Base, "Exception Frames"; DWARF 5, section 6.4.1. Data that are malformed give no rule.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

from opskit.proc.elf.cfa_program import Cie, Rule, run
from opskit.proc.elf.dwarf_bytes import ABSOLUTE, OMITTED, DwarfBytes, Malformed
from opskit.proc.elf.file import COMPRESSED, EH_FRAME_HDR
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.proc.elf.file import ElfFile, Read

_SORTED_TABLE = 0x3B  # pairs of sdata4, relative to .eh_frame_hdr
_MOST_ENTRIES, _MOST_SCANNED, _MOST_ENTRY_BYTES, _MOST_SECTION_BYTES = 1 << 22, 1 << 18, 1 << 16, 64 << 20
_FIRST_READ_BYTES = 256
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_LONG = 0xFFFFFFFF


class _Entry(NamedTuple):
    """A CIE or an FDE. `body`: what follows its second field, `cie`: where its CIE is; None for a CIE itself."""

    body: DwarfBytes
    cie: int | None
    end: int


class _Table(NamedTuple):
    """The FDEs of a section. `starts`, sorted, and `entries` count from `base`."""

    read: Read
    base: int
    starts: Sequence[int]
    entries: Sequence[int]
    is_debug: bool


class CallFrames:
    """The rules of one file, by address as the linker has it."""

    def __init__(self, image: ElfFile) -> None:
        self._image = image
        self._cies: dict[tuple[bool, int], Cie | None] = {}

    def rule(self, address: int) -> Rule | None:
        """How to unwind a function at an address; None without information."""
        for table in self._tables():
            at = bisect_right(table.starts, address - table.base) - 1
            if at >= 0:
                try:
                    found = self._rule(table, table.base + table.entries[at], address)
                except Malformed:
                    found = None
                if found is not None:
                    return found
        return None

    def _rule(self, table: _Table, at: int, address: int) -> Rule | None:
        entry = _entry(table.read, at, table.is_debug)
        cie = self._cie(table, entry.cie) if entry is not None and entry.cie is not None else None
        if entry is None or cie is None:
            return None
        body = entry.body
        begin = body.pointer(cie.encoding, read=self._image.read)
        size = body.pointer(cie.encoding & 0x0F)
        if not begin <= address < begin + size:
            return None
        if cie.is_augmented:
            body.block()
        return run(cie, body.data[body.at :], begin, address, lambda code: code.pointer(cie.encoding & 0x0F))

    def _cie(self, table: _Table, at: int) -> Cie | None:
        key = table.is_debug, at
        if key not in self._cies:
            entry = _entry(table.read, at, table.is_debug)
            self._cies[key] = None
            if entry is not None and entry.cie is None:
                self._cies[key] = _parse_cie(entry.body)
        return self._cies[key]

    def _tables(self) -> Iterator[_Table]:
        """The table of .eh_frame; that of .debug_frame is read only where it has no rule."""
        yield from self._eh_tables
        yield from self._debug_tables

    @cached_property
    def _eh_tables(self) -> tuple[_Table, ...]:
        image = self._image
        header = image.segment(EH_FRAME_HDR)
        if header is not None:
            found = _search_table(image.read, header.address)
            if found is not None:
                return (found,)
        section = image.section(".eh_frame")
        if section is None:
            return ()
        data = image.content(section, _MOST_SECTION_BYTES)
        return (self._scanned(data, section.address, is_debug=False),)

    @cached_property
    def _debug_tables(self) -> tuple[_Table, ...]:
        section = self._image.section(".debug_frame") or self._image.section(".zdebug_frame")
        if section is None:
            return ()
        data = self._image.content(section, _MOST_SECTION_BYTES)
        if section.name == ".zdebug_frame" or section.flags & COMPRESSED:
            data = _inflated(data[12 if section.name == ".zdebug_frame" else 24 :])
        return (self._scanned(data, 0, is_debug=True),)

    def _scanned(self, data: bytes, address: int, *, is_debug: bool) -> _Table:
        """A table of all FDEs, found one after the other."""
        table = _Table(_reader(data, address), 0, (), (), is_debug)
        found = sorted(self._ranges(table, address, address + len(data)))
        return table._replace(
            starts=array("Q", [start for start, _ in found]), entries=array("Q", [at for _, at in found])
        )

    def _ranges(self, table: _Table, at: int, end: int) -> Iterator[tuple[int, int]]:
        for _ in range(_MOST_SCANNED):
            try:
                entry = _entry(table.read, at, table.is_debug) if at < end else None
                if entry is None:
                    return
                cie = None if entry.cie is None else self._cie(table, entry.cie)
                if cie is not None:
                    yield entry.body.pointer(cie.encoding, read=self._image.read), at
            except Malformed:
                return
            at = entry.end


def _reader(data: bytes, address: int) -> Read:
    return lambda at, size: data[at - address : at - address + size] if at >= address else b""


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, _MOST_SECTION_BYTES)
    except zlib.error:
        return b""


def _search_table(read: Read, address: int) -> _Table | None:
    """The binary search table of .eh_frame_hdr; None without one of the usual form."""
    header = DwarfBytes(read(address, 32), address)
    try:
        version, frame, count, form = (header.byte() for _ in range(4))
        if version != 1 or count == OMITTED or form != _SORTED_TABLE:
            return None
        if frame != OMITTED:
            header.pointer(frame, address, read)
        entries = header.pointer(count, address, read)
    except Malformed:
        return None
    data = read(address + header.at, 8 * min(entries, _MOST_ENTRIES))
    pairs = array("i", data[: len(data) // 8 * 8])
    return _Table(read, address, pairs[::2], pairs[1::2], is_debug=False)


def _entry(read: Read, at: int, is_debug: bool) -> _Entry | None:
    """The entry at an address; None at the end of the section. Raises Malformed."""
    data = read(at, _FIRST_READ_BYTES)
    head = DwarfBytes(data, at)
    size = head.unpack(_U32)
    is_long = size == _LONG
    if is_long:
        size = head.unpack(_U64)
    if not size:
        return None
    begin, end = head.at, head.at + size
    if size > _MOST_ENTRY_BYTES:
        raise Malformed
    if end > len(data):
        data = read(at, end)
        if len(data) < end:
            raise Malformed
    body = DwarfBytes(data[:end], at, begin)
    link = body.unpack(_U64 if is_long and is_debug else _U32)
    if is_debug:
        cie = None if link == (_LONG if not is_long else (1 << 64) - 1) else link
    else:
        cie = at + begin - link if link else None
    return _Entry(body, cie, at + end)


def _parse_cie(body: DwarfBytes) -> Cie:
    version = body.byte()
    augmentation, found, _ = body.data[body.at :].partition(b"\0")
    if version not in (1, 3, 4) or not found or len(augmentation) > 8:
        raise Malformed
    body.at += len(augmentation) + 1
    if version == 4 and (body.byte(), body.byte()) != (8, 0):  # sizes of addresses and of segment selectors
        raise Malformed
    code_factor, data_factor = body.uleb(), body.sleb()
    return_address = body.byte() if version == 1 else body.uleb()
    encoding, is_signal = ABSOLUTE, False
    is_augmented = augmentation.startswith(b"z")
    program_at = body.at
    if is_augmented:
        size = body.uleb()
        program_at = body.at + size
        for letter in augmentation[1:]:
            if letter == ord("R"):
                encoding = body.byte()
            elif letter == ord("P"):
                form = body.byte()
                body.pointer(form & 0x7F)  # the personality routine is of no interest
            elif letter == ord("L"):
                body.byte()
            elif letter == ord("S"):
                is_signal = True
            else:
                break
    elif augmentation:
        raise Malformed
    return Cie(code_factor, data_factor, return_address, encoding, is_augmented, is_signal, body.data[program_at:])
