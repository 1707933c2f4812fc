"""The direct memory that a JVM has reserved, read in its memory: java.nio.Bits counts it in static AtomicLongs.

libjvm exports gHotSpotVMStructs (vmStructs.cpp), with which the serviceability agent finds its data structures: class loader
data, classes, their mirrors, the bases of compressed pointers. No attach, no safepoint; it needs ptrace rights. The
layouts were tried with all collectors of JDK 11, 17, 21 and 25 for x86-64, without compact object headers.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.errors import OpskitError
from opskit.proc.files.maps import find_mapping
from opskit.quantities import hexadecimal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.proc.fs import ProcFS

_TABLE, _ENTRY = "gHotSpotVMStructs", "gHotSpotVMStructEntry"
_PARTS = {"TypeName": "<Q", "FieldName": "<Q", "IsStatic": "<i", "Offset": "<Q", "Address": "<Q"}
_STRIDE = f"{_ENTRY}ArrayStride"
_WANTED = frozenset((_TABLE, _STRIDE, *(f"{_ENTRY}{part}Offset" for part in _PARTS)))
_DYNSYM = 11
_MOST_ENTRIES, _MOST_LOADERS, _MOST_CLASSES, _MOST_BYTES = 8192, 200_000, 100_000, 16 << 20
_LONGEST_NAME, _CHUNK_BYTES = 96, 1 << 16
_MOST_WORDS = 1 << 10  # of a mirror: java.lang.Class's own fields, then the statics
_COLOUR_BITS = (0, 13, 14, 15, 16)  # below the address in pointers of generational ZGC (zAddress.inline.hpp); else none
_BITS, _ATOMIC_LONG = b"java/nio/Bits", b"java/util/concurrent/atomic/AtomicLong"
_KLASS_AT, _VALUE_AT = 8, 16  # in an object with a header of 12 or 16 bytes
_FAILED = (OSError, struct.error, LookupError, ValueError, OverflowError, OpskitError)


class DirectMemory:
    """The direct memory of one JVM, read repeatedly."""

    def __init__(self, fs: ProcFS, pid: int) -> None:
        self.fs, self.pid = fs, pid
        self._fields: dict[tuple[bytes, bytes], int] = {}
        self._klass = 0

    def read_bytes(self) -> int | None:
        """Bytes reserved by java.nio.Bits; 0 before its first use. None: no right to read it, or an unknown layout."""
        try:
            self._fields = self._fields or self._read_table()
            self._klass = self._klass or self._find(_BITS)
            return max(self._counters(), default=None) if self._klass else 0
        except _FAILED:
            return None

    def _memory(self, address: int, size: int) -> bytes:
        return self.fs.read_at(self.fs.path(self.pid, "mem"), address, size)

    def _pointer(self, address: int) -> int:
        (value,) = struct.unpack("<Q", self._memory(address, 8))
        return value  # type: ignore[no-any-return]

    def _field(self, *names: tuple[bytes, bytes]) -> int:
        """The offset of a field, or the address of a static one, under the first of its names that the JVM has."""
        return self._fields[next((name for name in names if name in self._fields), names[0])]

    def _read_table(self) -> dict[tuple[bytes, bytes], int]:
        base, path = self._libjvm()
        at = {name: self._pointer(base + value) for name, value in self._symbols(path)}
        stride = at[_STRIDE]
        table = self._memory(at[_TABLE], stride * _MOST_ENTRIES)
        chunks: dict[int, bytes] = {}
        fields = {}
        for entry in range(0, len(table) - stride, stride):
            type_at, name_at, is_static, offset, address = (
                struct.unpack_from(form, table, entry + at[f"{_ENTRY}{part}Offset"])[0] for part, form in _PARTS.items()
            )
            if not type_at:
                break
            fields[self._text(type_at, chunks), self._text(name_at, chunks)] = address if is_static else offset
        return fields

    def _text(self, address: int, chunks: dict[int, bytes]) -> bytes:
        """A C string; they are close together in libjvm, and are read in chunks."""
        number, begin = divmod(address, _CHUNK_BYTES)
        if number not in chunks:
            chunks[number] = self._memory(number * _CHUNK_BYTES, _CHUNK_BYTES + _LONGEST_NAME)
        return chunks[number][begin : begin + _LONGEST_NAME].partition(b"\0")[0]

    def _libjvm(self) -> tuple[int, str]:
        """Where libjvm begins in memory, and its path as we see it."""
        found = find_mapping(self.fs.load(str, self.pid, "maps"), "/libjvm.so", lambda _: True)  # its first one
        base = hexadecimal(found.addresses.partition("-")[0]) if found is not None else None
        if found is None or base is None:
            raise KeyError("libjvm.so")
        return base, self.fs.inside(self.pid, found.path)

    def _symbols(self, path: str) -> Iterator[tuple[str, int]]:
        """The wanted dynamic symbols and their addresses relative to the library's begin (ELF, 64-bit, little-endian)."""
        header = self.fs.read_at(path, 0, 64)
        if header[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        (sections_at,) = struct.unpack_from("<Q", header, 0x28)
        size, count = struct.unpack_from("<HH", header, 0x3A)
        table = self.fs.read_at(path, sections_at, size * count)
        sections = [struct.unpack_from("<IIQQQQIIQQ", table, number * size) for number in range(count)]
        for section in sections:
            if section[1] != _DYNSYM:
                continue
            at, length, link = section[4:7]
            names = self.fs.read_at(path, sections[link][4], min(sections[link][5], _MOST_BYTES))
            symbols = self.fs.read_at(path, at, min(length, _MOST_BYTES))
            for name_at, _, _, _, value, _ in struct.iter_unpack("<IBBHQQ", symbols[: len(symbols) // 24 * 24]):
                name = names[name_at : name_at + _LONGEST_NAME].partition(b"\0")[0].decode("latin-1")
                if name in _WANTED:
                    yield name, value

    def _find(self, wanted: bytes) -> int:
        """The address of a class of the boot loader, whose data is the last of the list; 0: it is not loaded."""
        data = last = self._pointer(self._field((b"ClassLoaderDataGraph", b"_head")))
        next_at = self._field((b"ClassLoaderData", b"_next"))
        for _ in range(_MOST_LOADERS):
            if not data:
                break
            last, data = data, self._pointer(data + next_at)
        klass = self._pointer(last + self._field((b"ClassLoaderData", b"_klasses")))
        link_at = self._field((b"Klass", b"_next_link"))
        for _ in range(_MOST_CLASSES):
            if not klass or self._name(klass) == wanted:
                return klass
            klass = self._pointer(klass + link_at)
        raise ValueError("a list of classes without an end")

    def _name(self, klass: int) -> bytes:
        symbol = self._pointer(klass + self._field((b"Klass", b"_name")))
        (length,) = struct.unpack("<H", self._memory(symbol + self._field((b"Symbol", b"_length")), 2))
        if length > _LONGEST_NAME:
            return b""
        return self._memory(symbol + self._field((b"Symbol", b"_body[0]")), length)

    def _counters(self) -> Iterator[int]:
        """The values of the AtomicLongs that the mirror of Bits refers to: bytes reserved, capacity in use, buffers."""
        mirror = self._pointer(self._pointer(self._klass + self._field((b"Klass", b"_java_mirror"))))
        base, shift = self._compressed(b"oop")
        for colours in _COLOUR_BITS:
            statics = self._try(mirror >> colours, self._size(mirror >> colours))
            narrow, wide = (struct.iter_unpack(form, statics) for form in ("<I", "<Q"))
            found = [base + (reference << shift) for (reference,) in narrow if reference and not colours]
            found += [reference >> colours for (reference,) in wide if reference]
            values = [self._pointer(each + _VALUE_AT) for each in dict.fromkeys(found) if self._is_counter(each)]
            if values:
                yield from values
                return

    def _size(self, mirror: int) -> int:
        """The bytes of a mirror, with the statics of its class; 0 where there is none."""
        (size_at,) = struct.unpack("<i", self._memory(self._field((b"java_lang_Class", b"_oop_size_offset")), 4))
        word = self._try(mirror + size_at, 8)
        words = struct.unpack_from("<i", word)[0] if word else 0
        return words * 8 if 0 < words <= _MOST_WORDS else 0

    def _is_counter(self, address: int) -> bool:
        """Whether an AtomicLong begins there, with a compressed or a plain pointer to its class."""
        base, shift = self._compressed(b"klass")
        header = self._try(address + _KLASS_AT, 8)
        if len(header) < 8:
            return False
        (narrow,), (wide,) = struct.unpack_from("<I", header), struct.unpack("<Q", header)
        return any(self._is_named(klass, _ATOMIC_LONG) for klass in (base + (narrow << shift), wide))

    def _is_named(self, klass: int, name: bytes) -> bool:
        try:
            return self._name(klass) == name
        except (OSError, struct.error, OverflowError):
            return False  # not a class

    def _try(self, address: int, size: int) -> bytes:
        """Memory that may not be there; whole 8-byte words."""
        try:
            found = self._memory(address, size)
        except (OSError, OverflowError):
            return b""
        return found[: len(found) // 8 * 8]

    def _compressed(self, kind: bytes) -> tuple[int, int]:
        """The base and shift of compressed pointers of a kind: oop or klass."""
        owner = {b"oop": b"CompressedOops", b"klass": b"CompressedKlassPointers"}[kind]
        long = b"_narrow_" + kind
        base, shift = (
            self._field((owner, long + b"._" + part), (owner, b"_" + part), (b"Universe", long + b"._" + part))
            for part in (b"base", b"shift")
        )
        (bits,) = struct.unpack("<i", self._memory(shift, 4))
        return self._pointer(base), bits
