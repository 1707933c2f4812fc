"""HotSpot's own table of its data structures, read in a JVM's memory (src/hotspot/share/runtime/vmStructs.cpp).

libjvm exports gHotSpotVMStructs (fields), gHotSpotVMTypes (sizes), gHotSpotVMIntConstants and gHotSpotVMLongConstants for the
serviceability agent. No attach, no safepoint, no pause; it needs ptrace rights. Names differ between JDKs: callers name all.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.proc.elf.file import elf_in_memory, open_elf
from opskit.proc.elf.symbols import dynamic_symbols
from opskit.proc.files.maps import find_mapping
from opskit.proc.fs import optional
from opskit.proc.memory import ProcessMemory, u64
from opskit.quantities import hexadecimal
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from opskit.proc.fs import ProcFS
    from opskit.proc.memory import Memory

    # VmStructs in plain types.
    _Plain = tuple[dict[tuple[str, str], tuple[bool, int, str]], Mapping[str, int], Mapping[str, int], int]

_PARTS = {
    "VMStruct": {"TypeName": "<Q", "FieldName": "<Q", "TypeString": "<Q", "IsStatic": "<i", "Offset": "<Q", "Address": "<Q"},
    "VMType": {"TypeName": "<Q", "Size": "<Q"},
    "VMIntConstant": {"Name": "<Q", "Value": "<i"},
    "VMLongConstant": {"Name": "<Q", "Value": "<Q"},
}  # fmt: skip
_WANTED = frozenset(
    name.encode()
    for table, parts in _PARTS.items()
    for name in (f"gHotSpot{table}s", f"gHotSpot{table}EntryArrayStride", *(f"gHotSpot{table}Entry{part}Offset" for part in parts))
)  # fmt: skip
_MOST_ENTRIES, _MOST_STRIDE = 8192, 1024
_LONGEST_NAME, _CHUNK_BYTES, _MOST_CHUNKS = 160, 1 << 16, 256
_LARGEST_TYPE_BYTES = 1 << 16  # so much is read of a structure; HotSpot's are below 64 KiB
_LARGEST_LIBJVM_BYTES = 64 << 20


_PLAIN = "tuple[dict[tuple[str, str], tuple[bool, int, str]], dict[str, int], dict[str, int], int]"


class VmField(NamedTuple):
    """A field: its offset in the structure, or the address of a static one; its C++ type as HotSpot spells it."""

    is_static: bool
    at: int
    type: str


class VmStructs(NamedTuple):
    """The tables of one JVM. `libjvm`: where its library begins in memory."""

    fields: Mapping[tuple[str, str], VmField]
    sizes: Mapping[str, int]
    constants: Mapping[str, int]
    libjvm: int = 0

    def find_field(self, *names: tuple[str, str]) -> VmField | None:
        """The first (type, field) that this JVM has; None: it has none."""
        return next((self.fields[name] for name in names if name in self.fields), None)

    def field(self, *names: tuple[str, str]) -> VmField:
        """As `find_field`. Raises NotSupported for a JVM without the field."""
        found = self.find_field(*names)
        if found is None:
            raise _not_described("::".join(names[0]))
        return found

    def find(self, *names: tuple[str, str]) -> int | None:
        """The offset of `find_field`, or its address where it is static; None: this JVM has no such field."""
        found = self.find_field(*names)
        return None if found is None else found.at

    def at(self, *names: tuple[str, str]) -> int:
        """As `find`. Raises NotSupported for a JVM without the field."""
        return self.field(*names).at

    def size(self, *types: str) -> int:
        """The size in bytes, at most 64 KiB, of the first type that this JVM has. Raises NotSupported."""
        found = next((self.sizes[name] for name in types if name in self.sizes), None)
        if found is None:
            raise _not_described(types[0])
        return found

    def is_libjvm(self, address: int) -> bool:
        """Whether the address is in libjvm, or shortly behind it."""
        return self.libjvm <= address < self.libjvm + _LARGEST_LIBJVM_BYTES


def _not_described(name: str) -> NotSupported:
    return NotSupported(f"this JVM's libjvm does not describe {name} in its vmStructs table")


def read_vmstructs(fs: ProcFS, pid: int, memory: Memory, types: Collection[str] | None = None) -> VmStructs:
    """Read the tables; with `types` only the fields of these. Raises NotSupported without a libjvm of HotSpot and where its tables cannot be read; OSError without rights."""
    wanted = None if types is None else tuple(sorted(types))

    def read(machine: ProcFS) -> _Plain:
        found = _read(machine, pid, memory if machine is fs else ProcessMemory(machine, pid), wanted)
        return (
            {key: (field.is_static, field.at, field.type) for key, field in found.fields.items()},
            found.sizes,
            found.constants,
            found.libjvm,
        )

    fields, sizes, constants, begin = fs.calls.work_out(fs, "vmstructs", _PLAIN, (pid, wanted), read)
    return VmStructs({key: VmField(*field) for key, field in fields.items()}, sizes, constants, begin)


def _read(fs: ProcFS, pid: int, memory: Memory, types: Collection[str] | None) -> VmStructs:
    begin, path = find_libjvm(fs, pid)
    symbols = _symbols(fs, path, memory, begin)
    at = {name: u64(memory, begin + value) for name, value in symbols.items()}
    tables = _Tables(memory, at)
    fields = {
        (tables.text(type_at), tables.text(name_at)): VmField(bool(static), address if static else offset, tables.text(string_at))
        for type_at, name_at, string_at, static, offset, address in tables.entries("VMStruct")
        if types is None or tables.text(type_at) in types
    }  # fmt: skip
    if types is not None and fields:
        return VmStructs(fields, {}, {}, begin)
    sizes = {tables.text(name_at): size for name_at, size in tables.entries("VMType") if size <= _LARGEST_TYPE_BYTES}
    constants = {
        tables.text(name_at): value
        for table in ("VMIntConstant", "VMLongConstant")
        for name_at, value in tables.entries(table)
    }
    if not fields or not sizes:
        raise NotSupported(
            f"{path}: no vmStructs table was found: not HotSpot, or a library without its dynamic symbols"
        )
    return VmStructs(fields, sizes, constants, begin)


class _Tables:
    def __init__(self, memory: Memory, at: Mapping[str, int | None]) -> None:
        self.memory, self.at = memory, at
        self._chunks: dict[int, bytes] = {}
        self._texts: dict[int, str] = {0: ""}

    def entries(self, table: str) -> Iterator[tuple[int, ...]]:
        """The parts of each entry, up to the one without a name."""
        stride, begin = self.at.get(f"gHotSpot{table}EntryArrayStride"), self.at.get(f"gHotSpot{table}s")
        parts = [
            (struct.Struct(form), self.at.get(f"gHotSpot{table}Entry{part}Offset"))
            for part, form in _PARTS[table].items()
        ]
        if not stride or not begin or stride > _MOST_STRIDE:
            return
        if any(at is None or at + form.size > stride for form, at in parts):
            return
        data = self._read(begin, stride * _MOST_ENTRIES)
        for entry in range(0, len(data) - stride, stride):
            found = tuple(form.unpack_from(data, entry + (at or 0))[0] for form, at in parts)
            if not found[0]:
                return
            yield found

    def _read(self, begin: int, size: int) -> bytes:
        """As much as there is: the library's mapping may end before."""
        while size >= 4096:
            found = self.memory.read(begin, size)
            if found:
                return found
            size //= 2
        return b""

    def text(self, address: int) -> str:
        """A C string; they are close together in libjvm, and are read in chunks."""
        found = self._texts.get(address)
        if found is None:
            found = self._texts[address] = self._read_text(address)
        return found

    def _read_text(self, address: int) -> str:
        number, begin = divmod(address, _CHUNK_BYTES)
        if number not in self._chunks:
            if len(self._chunks) >= _MOST_CHUNKS:
                self._chunks.clear()
            self._chunks[number] = self.memory.read(number * _CHUNK_BYTES, _CHUNK_BYTES + _LONGEST_NAME)
        return self._chunks[number][begin : begin + _LONGEST_NAME].partition(b"\0")[0].decode("latin-1")


def find_libjvm(fs: ProcFS, pid: int) -> tuple[int, str]:
    """Where libjvm begins in memory, and its path as we see it. Raises NotSupported where none is mapped."""
    maps = fs.load(str, pid, "maps")
    if find_mapping(maps, "/libj9vm", lambda _: True) is not None:  # its libjvm.so only starts it
        raise NotSupported("Eclipse OpenJ9 has no vmStructs table: only HotSpot's memory can be read from outside")
    found = find_mapping(maps, "/libjvm.so", lambda _: True)  # its first one
    begin = hexadecimal(found.addresses.partition("-")[0]) if found is not None else None
    if found is None or begin is None:
        raise NotSupported(f"{pid} has no libjvm.so mapped: not a HotSpot JVM, or one linked into its launcher")
    mapped = fs.path(pid, "map_files", found.addresses)  # that very file, also when it was deleted
    if optional(fs.read_at, mapped, 0, 4, default=b"") == b"\x7fELF":
        return begin, mapped
    return begin, fs.inside(pid, found.path)


def _symbols(fs: ProcFS, path: str, memory: Memory, begin: int) -> dict[str, int]:
    """The wanted dynamic symbols and their addresses relative to the library's begin."""
    image = open_elf(fs, path) or elf_in_memory(memory, begin)
    if image is None:
        raise NotSupported(f"{path}: not a 64-bit little-endian ELF file, or one that cannot be read")
    return dynamic_symbols(image, _WANTED)
