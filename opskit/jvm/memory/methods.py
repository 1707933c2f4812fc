"""Java methods in HotSpot's memory: class, name, source file, lines (oops/method.hpp, constMethod.hpp, constantPool.hpp)."""

from __future__ import annotations

from bisect import bisect_right
from struct import Struct
from typing import TYPE_CHECKING

from opskit.jvm.memory.layout import find_scalar, scalar
from opskit.jvm.memory.symbols import Symbols
from opskit.jvm.memory.unsigned5 import Codings
from opskit.proc.memory import u16, u64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.memory.unsigned5 import Coding
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_FLAGS = Struct("<H")
_HAS_LINES = 1  # ConstMethod::_has_linenumber_table, the same in 8 to 25
_MOST_TABLE_BYTES = 1 << 18
_MOST_METHODS, _MOST_LINES = 100_000, 1 << 21  # that are kept
_MOST_ENTRIES = 1 << 16  # a method has at most so many bytecodes
_ESCAPE = 0xFF
_LINE_BITS = 3


class Method:
    """A method. `name`: package.Class.method; `begin`, `end`: where its bytecodes are, the same for a native method."""

    __slots__ = ("_bcis", "_lines", "begin", "end", "name", "source")

    def __init__(
        self, name: str, source: str | None, bytecodes: tuple[int, int], lines: Sequence[tuple[int, int]]
    ) -> None:
        self.name, self.source = name, source
        self.begin, self.end = bytecodes
        self._bcis, self._lines = [bci for bci, _ in lines], [line for _, line in lines]

    def line(self, bci: int) -> int | None:
        """The source line of a bytecode; None where it is unknown."""
        at = bisect_right(self._bcis, bci)
        return self._lines[at - 1] if at else None


class Methods:
    """The methods of one JVM, by the address of their Method. They are read once, and compared after each `forget`."""

    def __init__(self, structs: VmStructs, memory: Memory) -> None:
        """Raise NotSupported for an unknown layout."""
        self.memory = memory
        self.codings = Codings()
        self._symbols = Symbols(structs, memory)
        self._const_at = structs.at(("Method", "_constMethod"))
        self._const_bytes = structs.size("ConstMethod")
        self._constants, self._name, self._code_size, self._whole = (
            scalar(structs, ("ConstMethod", field))
            for field in ("_constants", "_name_index", "_code_size", "_constMethod_size")
        )
        self._flags = scalar(structs, ("ConstMethod", "_flags._flags"), ("ConstMethod", "_flags"), form=_FLAGS)
        self._holder_at = structs.at(("ConstantPool", "_pool_holder"))
        self._pool_source = find_scalar(structs, ("ConstantPool", "_source_file_name_index"))
        self._class_source = find_scalar(structs, ("InstanceKlass", "_source_file_name_index"))
        self._class_name_at = structs.at(("Klass", "_name"))
        self._known: dict[int, tuple[tuple[object, ...], Method]] = {}
        self._checked: dict[int, Method | None] = {}
        self._lines_kept = 0

    def forget(self) -> None:
        """Compare each method with the memory again before its next use: its class may have been unloaded."""
        self._checked.clear()
        self._symbols.forget()

    def get(self, address: int) -> Method | None:
        """The method whose Method is there; None where there is none."""
        try:
            return self._checked[address]
        except KeyError:
            pass
        if len(self._checked) >= _MOST_METHODS or self._lines_kept > _MOST_LINES:
            self._checked.clear()
            self._known.clear()
            self._lines_kept = 0
        found = self._checked[address] = self._read(address)
        return found

    def _read(self, address: int) -> Method | None:
        if address & 7 or address < 4096:
            return None
        const = u64(self.memory, address + self._const_at) or 0
        header = self.memory.read(const, self._const_bytes) if const and not const & 7 else b""
        if len(header) < self._const_bytes:
            return None
        pool = self._constants.of(header)
        klass = u64(self.memory, pool + self._holder_at) or 0
        symbol = u64(self.memory, klass + self._class_name_at) or 0
        identity = (const, header, klass, symbol)
        known = self._known.get(address)
        if known is not None and known[0] == identity:
            return known[1]
        name = self._symbols.constant(pool, self._name.of(header))
        class_name = self._symbols.text(symbol)
        if not name or not class_name:
            return None
        begin = const + self._const_bytes
        end = begin + self._code_size.of(header)
        whole = f"{class_name.replace('/', '.').replace('+0x', '/0x')}.{name}"
        lines = self._lines(const, header, end)
        method = Method(whole, self._source(klass, pool), (begin, end), lines)
        self._lines_kept += len(lines)
        self._known[address] = identity, method
        return method

    def _source(self, klass: int, pool: int) -> str | None:
        place = klass + self._class_source.at if self._class_source is not None else 0
        if self._pool_source is not None:
            place = pool + self._pool_source.at
        index = u16(self.memory, place) if place else None
        return self._symbols.constant(pool, index) if index else None

    def _lines(self, const: int, header: bytes, end: int) -> Sequence[tuple[int, int]]:
        """The line table behind the bytecodes, decoded by the coding that makes sense of it."""
        size = min(const + self._whole.of(header) * 8 - end, _MOST_TABLE_BYTES)
        if not self._flags.of(header) & _HAS_LINES or size <= 0:
            return ()
        data = self.memory.read(end, size)
        found = [(coding, lines_of(data, coding, self._code_size.of(header))) for coding in self.codings.ordered]
        sensible = [(coding, lines) for coding, lines in found if lines is not None]
        if len(sensible) == 1:
            self.codings.vote(sensible[0][0])
        return sensible[0][1] if sensible else ()


def lines_of(data: bytes, coding: Coding, code_size: int) -> list[tuple[int, int]] | None:
    """The (bci, line) pairs of a compressed line table, sorted; None where it makes no sense.

    A byte holds a distance in bytecodes and, in its low three bits, in lines; 0 ends the table; 255 precedes two signed numbers.
    """
    found: list[tuple[int, int]] = []
    at = bci = line = 0
    while at < len(data):
        byte = data[at]
        at += 1
        if byte == 0:
            return sorted(found)
        if byte == _ESCAPE:
            try:
                bcis, at = coding.read_signed(data, at)
                lines, at = coding.read_signed(data, at)
            except IndexError:
                return None
        else:
            bcis, lines = byte >> _LINE_BITS, byte & ((1 << _LINE_BITS) - 1)
        bci, line = bci + bcis, line + lines
        if not 0 <= bci < max(code_size, 1) or not 0 <= line <= 0xFFFF or len(found) >= _MOST_ENTRIES:
            return None
        found.append((bci, line))
    return None
