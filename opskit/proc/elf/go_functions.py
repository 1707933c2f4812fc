"""The functions of a Go program (Go 1.18 and later), also of a stripped one: the table that its runtime uses (runtime/symtab.go)."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opskit.proc.elf.file import ElfFile

_SECTIONS = (".gopclntab", ".data.rel.ro.gopclntab")
# pcHeader: magic, alignment of code, size of a pointer; the number of functions and of files, where the code begins, offsets of
# the names, of three other tables, and of the table of functions.
_HEADER = struct.Struct("<I2xBB8Q")
_MAGICS = (0xFFFFFFF0, 0xFFFFFFF1)
_MOST_FUNCTIONS, _LONGEST_NAME = 1 << 22, 1024
_FUNCTION = struct.Struct("<Ii")  # where its code begins, the offset of its name


class GoFunctions:
    """The functions by address."""

    def __init__(self, image: ElfFile) -> None:
        self._image = image
        self._at = self._names = self._table = self._text = 0
        self._starts, self._functions, self._end = array("I"), array("I"), 0
        section = next((found for name in _SECTIONS if (found := image.section(name))), None)
        header = image.read_at(section.offset, _HEADER.size) if section else b""
        if section is None or len(header) < _HEADER.size:
            return
        magic, _, pointer_bytes, count, _, text, names, _, _, _, table = _HEADER.unpack(header)
        if magic not in _MAGICS or pointer_bytes != 8:
            return
        code = image.section(".text")
        # Since Go 1.26 the linker leaves the begin of the code to the runtime.
        self._text = text or (code.address if code else 0)
        self._at, self._names, self._table = section.offset, names, table
        data = image.read_at(section.offset + table, 8 * min(count, _MOST_FUNCTIONS))
        pairs = array("I", data[: len(data) // 8 * 8])
        self._starts, self._functions = pairs[::2], pairs[1::2]
        end = image.read_at(section.offset + table + 8 * len(self._starts), 4)  # of the last function
        self._end = int.from_bytes(end, "little")

    def begin(self, address: int) -> int | None:
        """Where the nearest function at or below an address begins."""
        at = bisect_right(self._starts, address - self._text) - 1
        return self._text + self._starts[at] if at >= 0 else None

    def name(self, address: int) -> str | None:
        """The function at an address, as `package.Type.method`."""
        offset = address - self._text
        at = bisect_right(self._starts, offset) - 1
        if at < 0 or offset >= self._end:
            return None
        image = self._image
        function = image.read_at(self._at + self._table + self._functions[at], _FUNCTION.size)
        if len(function) < _FUNCTION.size:
            return None
        _, name_at = _FUNCTION.unpack(function)
        name, end, _ = image.read_at(self._at + self._names + max(name_at, 0), _LONGEST_NAME).partition(b"\0")
        return name.decode("utf-8", "replace") if end and name else None
