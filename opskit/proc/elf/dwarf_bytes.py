"""Numbers and pointers of DWARF data (DWARF 5, section 7.6; Linux Standard Base, "DWARF Extensions": DW_EH_PE_*)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ABSOLUTE, OMITTED = 0x00, 0xFF
_PC_RELATIVE, _DATA_RELATIVE, _INDIRECT = 0x10, 0x30, 0x80
_U64 = struct.Struct("<Q")
_FORMS = {
    0x00: _U64, 0x02: struct.Struct("<H"), 0x03: struct.Struct("<I"), 0x04: _U64,
    0x0A: struct.Struct("<h"), 0x0B: struct.Struct("<i"), 0x0C: struct.Struct("<q"),
}  # fmt: skip
_LONGEST_LEB = 10
_WORD = (1 << 64) - 1


class Malformed(Exception):  # noqa: N818
    """The data end early, or have something that this reader does not know. Never leaves this package."""


class DwarfBytes:
    """A place in some bytes that are loaded at `address`."""

    __slots__ = ("address", "at", "data")

    def __init__(self, data: bytes, address: int = 0, at: int = 0) -> None:
        self.data, self.address, self.at = data, address, at

    def byte(self) -> int:
        """One byte. Raises Malformed at the end, as all others do."""
        if self.at >= len(self.data):
            raise Malformed
        self.at += 1
        return self.data[self.at - 1]

    def unpack(self, form: struct.Struct) -> int:
        """One number of a fixed size."""
        begin, self.at = self.at, self.at + form.size
        if self.at > len(self.data):
            raise Malformed
        return form.unpack_from(self.data, begin)[0]  # type: ignore[no-any-return]

    def uleb(self) -> int:
        """An unsigned LEB128 number."""
        value = shift = 0
        for _ in range(_LONGEST_LEB):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise Malformed

    def sleb(self) -> int:
        """A signed LEB128 number."""
        value = shift = 0
        for _ in range(_LONGEST_LEB):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value - (1 << shift) if byte & 0x40 else value
        raise Malformed

    def block(self) -> bytes:
        """A LEB128 length and so many bytes."""
        size = self.uleb()
        begin, self.at = self.at, self.at + size
        if self.at > len(self.data):
            raise Malformed
        return self.data[begin : self.at]

    def pointer(self, encoding: int, data_base: int = 0, read: Callable[[int, int], bytes] | None = None) -> int:
        """An encoded pointer. `data_base`: what datarel counts from; `read`: memory, for indirect ones."""
        place = self.address + self.at
        form = encoding & 0x0F
        value = self.uleb() if form == 0x01 else self.sleb() if form == 0x09 else self._fixed(form)
        base = encoding & 0x70
        if value and base == _PC_RELATIVE:
            value += place
        elif value and base == _DATA_RELATIVE:
            value += data_base
        elif base not in (0, _PC_RELATIVE, _DATA_RELATIVE):
            raise Malformed
        value &= _WORD
        if encoding & _INDIRECT:
            found = read(value, 8) if read else b""
            if len(found) != 8:
                raise Malformed
            value = _U64.unpack(found)[0]
        return value

    def _fixed(self, form: int) -> int:
        if form not in _FORMS:
            raise Malformed
        return self.unpack(_FORMS[form])
