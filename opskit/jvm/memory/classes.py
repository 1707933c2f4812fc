"""The classes of a JVM and their fields, read in its memory (InstanceKlass).

JDK 8 to 20 keep six u2 per field in InstanceKlass::_fields (oops/fieldInfo.hpp), later JDKs a compressed stream of numbers
in InstanceKlass::_fieldinfo_stream: the number of fields and of injected ones, then of each its name, signature, offset, access
flags, field flags, and what the field flags announce.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.jvm.memory.dictionary import dictionary_classes
from opskit.jvm.memory.symbols import Symbols
from opskit.jvm.memory.unsigned5 import Coding
from opskit.proc.memory import PAGE_BYTES, i32, u16, u64
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_MOST_LOADERS, _MOST_CLASSES, _MOST_FIELDS, _MOST_SUPERS, _MOST_METHODS = 200_000, 100_000, 4096, 64, 16384
_MOST_KEPT = 4096
_STATIC, _INJECTED = 0x8, 0x400  # access flags; JVM_ACC_FIELD_INTERNAL
_SLOTS, _OFFSET_TAG, _TAG_BITS = 6, 1, 2
# Bits of the field flags: what follows in the stream has one number for each of the first three.
_INITIALIZED, _GENERIC, _CONTENDED, _INJECTED_BIT = "_ff_initialized", "_ff_generic", "_ff_contended", "_ff_injected"
_MOST_BIT = 31
_WORD_BYTES = 8
_DATA_AT = 4  # of Array<u1>, Array<u2>: after its length
_CODING = Coding(1, 191)  # since JDK 20


class JavaField(NamedTuple):
    """A field of a class: its offset in the object, or in the mirror where it is static."""

    name: str
    offset: int
    is_static: bool


class Classes:
    """The classes of one JVM, by the addresses of their Klasses. Raises NotSupported for a table without them."""

    def __init__(self, vm: VmStructs, memory: Memory) -> None:
        self.symbols = Symbols(vm, memory)
        self._vm, self._memory = vm, memory
        self._name_at, self._super_at = vm.at(("Klass", "_name")), vm.at(("Klass", "_super"))
        self._pool_at = vm.at(("InstanceKlass", "_constants"))
        self._fields: dict[int, Mapping[str, JavaField]] = {}

    def name(self, klass: int) -> str | None:
        """The name of a class, `java/lang/String`; None where no class is."""
        return self.symbols.at(klass + self._name_at) if klass else None

    def supers(self, klass: int) -> Iterator[int]:
        """The class, its superclass, and so on."""
        for _ in range(_MOST_SUPERS):
            if not klass:
                return
            yield klass
            klass = u64(self._memory, klass + self._super_at) or 0

    def field(self, klass: int, name: str) -> JavaField | None:
        """A field of the class or of its superclasses; None: there is none."""
        return next((found for each in self.supers(klass) if (found := self.fields(each).get(name))), None)

    def fields(self, klass: int) -> Mapping[str, JavaField]:
        """The fields that the class itself declares, with those that HotSpot injects, by name."""
        known = self._fields.get(klass)
        if known is None:
            try:
                known = {field.name: field for field in self._read_fields(klass)}
            except (IndexError, struct.error):
                known = {}
            if known:
                if len(self._fields) >= _MOST_KEPT:
                    self._fields.clear()
                self._fields[klass] = known
        return known

    def boot_class(self, name: str) -> int:
        """The address of a class of the boot loader; 0: it is not loaded. Raises as `boot_classes` does."""
        return self.boot_classes((name,)).get(name, 0)

    def boot_classes(self, names: Collection[str], boot: int = 0) -> dict[str, int]:
        """The addresses of those of these classes that the boot loader has loaded. `boot`: its data, where that is known.

        Raises NotSupported where the list does not end, which can happen while it changes.
        """
        found: dict[str, int] = {}
        has_length = self.symbols.length_test({len(name) for name in names})  # most names need not be read whole
        for klass, symbol in self._named_classes_of(boot or self._boot_loader()):
            name = self.symbols.text(symbol) if has_length(symbol) else None
            if name is not None and name in names:
                found[name] = klass
                if len(found) == len(names):
                    break
        return found

    def _named_classes_of(self, loader: int) -> Iterator[tuple[int, int]]:
        """The classes of the loader with these data, and the addresses of their names."""
        list_at = self._vm.find(("ClassLoaderData", "_klasses"))
        if list_at is None:
            for klass, each in dictionary_classes(self._vm, self._memory):
                if each == loader:
                    yield klass, u64(self._memory, klass + self._name_at) or 0
            return
        klass = (u64(self._memory, loader + list_at) or 0) if loader else 0
        link_at = self._vm.at(("Klass", "_next_link"))
        low, high = sorted((self._name_at, link_at))
        read, words = self._memory.read, struct.Struct(f"<Q{high - low - _WORD_BYTES}xQ")
        is_name_first, size = low == self._name_at, words.size
        pages: dict[int, bytes] = {}  # there may be tens of thousands of classes
        for _ in range(_MOST_CLASSES):
            if not klass:
                return
            number, at = divmod(klass + low, PAGE_BYTES)
            page = pages.get(number)
            if page is None:
                page = pages[number] = read(number * PAGE_BYTES, PAGE_BYTES)
            if at + size > len(page):
                page, at = read(klass + low, size), 0
                if len(page) < size:
                    return
            first, second = words.unpack_from(page, at)
            yield (klass, first) if is_name_first else (klass, second)
            klass = second if is_name_first else first
        raise NotSupported("the list of classes in this JVM's memory has no end")

    def _boot_loader(self) -> int:
        """The data of the boot loader, the last of the list; 0: none can be read."""
        data = last = u64(self._memory, self._vm.at(("ClassLoaderDataGraph", "_head"))) or 0
        next_at = self._vm.at(("ClassLoaderData", "_next"))
        for _ in range(_MOST_LOADERS):
            if not data:
                break
            last, data = data, u64(self._memory, data + next_at) or 0
        return last

    def methods(self, klass: int) -> Iterator[int]:
        """The addresses of the Methods that the class declares."""
        array = u64(self._memory, klass + self._vm.at(("InstanceKlass", "_methods"))) or 0
        count = i32(self._memory, array) or 0
        data = self._memory.read(array + 8, 8 * max(0, min(count, _MOST_METHODS)))  # pointers are aligned
        for (method,) in struct.iter_unpack("<Q", data[: len(data) // 8 * 8]):
            yield method

    def _read_fields(self, klass: int) -> Iterator[JavaField]:
        pool = u64(self._memory, klass + self._pool_at) or 0
        stream_at, array_at = (self._vm.find(("InstanceKlass", part)) for part in ("_fieldinfo_stream", "_fields"))
        if stream_at is not None:
            yield from self._from_stream(pool, self._array(klass + stream_at, 1))
        elif array_at is not None:
            count = u16(self._memory, klass + self._vm.at(("InstanceKlass", "_java_fields_count"))) or 0
            yield from self._from_slots(pool, self._array(klass + array_at, 2), count)

    def _array(self, pointer: int, item_bytes: int) -> bytes:
        """The data of the Array that is referred to from this address."""
        array = u64(self._memory, pointer) or 0
        count = i32(self._memory, array) or 0
        return self._memory.read(array + _DATA_AT, item_bytes * max(0, min(count, _MOST_FIELDS * _SLOTS)))

    def _from_slots(self, pool: int, data: bytes, count: int) -> Iterator[JavaField]:
        """Fields of JDK 8 to 20; behind those and the injected ones come signatures, without an order of their own."""
        size = 2 * _SLOTS
        for number in range(min(len(data) // size, _MOST_FIELDS)):
            access, name, _, _, low, high = struct.unpack_from("<6H", data, number * size)
            is_injected = bool(access & _INJECTED)
            if number >= count and not is_injected:
                return
            if low & ((1 << _TAG_BITS) - 1) == _OFFSET_TAG:
                yield from self._made(pool, name, (low | high << 16) >> _TAG_BITS, access, is_injected)

    def _from_stream(self, pool: int, data: bytes) -> Iterator[JavaField]:
        """Fields of JDK 21 and later."""
        bits = {
            part: 1 << (self._vm.constants.get(f"FieldInfo::FieldFlags::{part}", place) & _MOST_BIT)
            for place, part in ((0, _INITIALIZED), (1, _INJECTED_BIT), (2, _GENERIC), (4, _CONTENDED))
        }
        read = _CODING.read
        java, at = read(data, 0)
        injected, at = read(data, at)
        for _ in range(min(java + injected, _MOST_FIELDS)):
            numbers = []
            for _ in range(5):
                number, at = read(data, at)
                numbers.append(number)
            name, _, offset, access, flags = numbers
            for part in (_INITIALIZED, _GENERIC, _CONTENDED):
                if flags & bits[part]:
                    _, at = read(data, at)
            yield from self._made(pool, name, offset, access, bool(flags & bits[_INJECTED_BIT]))

    def _made(self, pool: int, name: int, offset: int, access: int, is_injected: bool) -> Iterator[JavaField]:
        """The field, if its name can be read. That of an injected one is a number of a symbol that the JVM itself uses."""
        if is_injected:
            table = self._vm.find(("Symbol", "_vm_symbols[0]"), ("vmSymbols", "_symbols[0]"))
            text = self.symbols.at(table + 8 * name) if table is not None else None
        else:
            text = self.symbols.constant(pool, name)
        if text:
            yield JavaField(text, offset, bool(access & _STATIC))
