"""Java objects in a JVM's memory: compressed and coloured pointers, object headers, fields, strings.

A collector moves objects while they are read: what is found is checked by its class, and is None where it does not fit.
Source: src/hotspot/share/oops, and gc/z/zAddress.hpp for the coloured pointers of ZGC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.jvm.memory.classes import Classes
from opskit.jvm.memory.flags import read_flags
from opskit.proc.memory import i32, u32, u64

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.jvm.memory.flags import FlagValue
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_COMPRESSED, _COMPRESSED_CLASSES, _COMPACT = (
    "UseCompressedOops",
    "UseCompressedClassPointers",
    "UseCompactObjectHeaders",
)
OBJECT_FLAGS = (_COMPRESSED, _COMPRESSED_CLASSES, _COMPACT, "UseZGC", "ZGenerational")
_KLASS_AT = 8
_KLASS_SHIFT, _WORD_BITS = 42, 64  # of the class in a compact header, where the table has no markWord::klass_shift
_FORWARDED, _LOCK_BITS = 3, 3  # of a mark: a collector has moved the object to the rest of the word
_REMAPPED, _REMAPPED_AT = 0xF, 12  # generational ZGC: one of four bits; the address begins above it
_LONGEST_STRING = 1 << 16
_MOST_MOVES = 8
_LATIN1 = 0
_LOG2_ITEM, _LOG2_WORD = 0xFF, 3  # of an array's layout helper: log2 of an item's bytes
_ALIGNMENT, _ADDRESSES = 8, 1 << 48


class Objects:
    """The heap of one JVM. Raises NotSupported for a table without its layout."""

    def __init__(self, vm: VmStructs, memory: Memory, flags: Mapping[str, FlagValue] | None = None) -> None:
        """`flags`: OBJECT_FLAGS, where they are known."""
        self.classes = Classes(vm, memory)
        self.memory = memory
        if flags is None:
            flags = read_flags(vm, memory, OBJECT_FLAGS)
        self._is_narrow = bool(flags.get(_COMPRESSED))
        self._is_compact = bool(flags.get(_COMPACT))
        self._has_narrow_classes = self._is_compact or bool(flags.get(_COMPRESSED_CLASSES, True))
        # Without the flag, ZGC is of one generation up to JDK 20, and generational from JDK 24 on: then it has load shifts.
        has_colours = vm.find(("ZGlobalsForVMStructs", "_ZPointerLoadShift")) is not None
        self._is_coloured = bool(flags.get("UseZGC")) and bool(flags.get("ZGenerational", has_colours))
        self._bad_mask = None
        self.is_zgc = bool(flags.get("UseZGC"))
        if self.is_zgc:
            self._bad_mask = _bad_mask(vm, memory, is_generational=self._is_coloured)
        plain = (0, 0)
        self._oops = _compressed(vm, memory, "CompressedOops", "_narrow_oop") if self._is_narrow else plain
        has = self._has_narrow_classes
        self._klasses = _compressed(vm, memory, "CompressedKlassPointers", "_narrow_klass") if has else plain
        shift = vm.constants.get("markWord::klass_shift", _KLASS_SHIFT)
        self._klass_shift = shift if 0 <= shift < _WORD_BITS else _KLASS_SHIFT
        self._layout_at = vm.at(("Klass", "_layout_helper"))
        self._mirror = vm.field(("Klass", "_java_mirror"))

    def reference(self, at: int, *, is_current: bool = False) -> int:
        """The address of the object that the field at this address refers to; 0: null, or it cannot be read.

        With ZGC the object may have been moved since the field was last used. `is_current`: 0 also where that is so.
        """
        if self._is_narrow:
            narrow, (base, shift) = u32(self.memory, at), self._oops
            return base + (narrow << shift) if narrow else 0
        pointer = u64(self.memory, at) or 0
        if is_current and self._is_bad(pointer):
            return 0
        return self._plain(pointer)

    def handle(self, at: int, type_name: str, *, is_current: bool = False) -> int:
        """The object that a field of a C++ structure refers to: an `OopHandle` or, up to JDK 16, an `oop`. 0: none.

        `is_current`: as of `reference`.
        """
        found = u64(self.memory, at) or 0
        if type_name == "OopHandle":
            pointer = (u64(self.memory, found) or 0) if found else 0
            found = 0 if is_current and self._is_bad(pointer) else self._plain(pointer)
        return found

    def mirror(self, klass: int, *, is_current: bool = False) -> int:
        """The java.lang.Class of a class, which has its static fields, where it is now; 0: none. `is_current`: as of `reference`."""
        found = self.handle(klass + self._mirror.at, self._mirror.type, is_current=is_current)
        return self.moved(found) if found else 0

    def klass(self, address: int) -> int:
        """The class of an object; 0: there is none."""
        if not self._is_address(address):
            return 0
        if self._has_narrow_classes:
            narrow, (base, shift) = self._narrow_klass(address), self._klasses
            return base + (narrow << shift) if narrow else 0
        return u64(self.memory, address + _KLASS_AT) or 0

    def moved(self, address: int) -> int:
        """Where a collector has moved an object to that was at this address before; the address itself where it has not."""
        for _ in range(_MOST_MOVES):
            mark = u64(self.memory, address) or 0
            target = mark & ~_LOCK_BITS
            if mark & _LOCK_BITS != _FORWARDED or not self._is_address(target) or not self.klass(target):
                break
            address = target
        return address

    def class_name(self, address: int) -> str | None:
        """The name of an object's class, `java/lang/String`; None where no object is."""
        return self.classes.name(self.klass(address))

    def is_a(self, address: int, name: str) -> bool:
        """Whether the object is of this class or of a subclass."""
        return any(self.classes.name(each) == name for each in self.classes.supers(self.klass(address)))

    def field_at(self, address: int, name: str) -> int:
        """The address of an object's field; 0: there is none."""
        found = self.classes.field(self.klass(address), name)
        return 0 if found is None or found.is_static else address + found.offset

    def get(self, address: int, name: str, *, is_current: bool = False) -> int:
        """The object that a field of an object refers to; 0: none. `is_current`: as of `reference`."""
        at = self.field_at(address, name)
        return self.reference(at, is_current=is_current) if at else 0

    def string(self, address: int, *, is_current: bool = True) -> str | None:
        """The text of a java.lang.String, or of a char[]; None where there is none. `is_current`: as of `reference`."""
        if not address:
            return None
        if self.class_name(address) != "java/lang/String":
            return self._characters(address, is_wide=True)
        coder_at = self.field_at(address, "coder")  # since JDK 9
        coder = self.memory.read(coder_at, 1) if coder_at else b"\1"
        return self._characters(self.get(address, "value", is_current=is_current), is_wide=coder != bytes((_LATIN1,)))

    def array_shape(self, array: int) -> tuple[int, int, int] | None:
        """Of an array: where its items begin, the bytes of one, their number. None: no array is there."""
        layout = i32(self.memory, self.klass(array) + self._layout_at) if array else None
        length_at = _KLASS_AT if self._is_compact else _KLASS_AT + 4 if self._has_narrow_classes else _KLASS_AT + 8
        count = i32(self.memory, array + length_at)
        if layout is None or count is None or layout >= 0 or layout & _LOG2_ITEM > _LOG2_WORD:
            return None
        return layout >> 16 & 0xFF, 1 << (layout & _LOG2_ITEM), count

    def _characters(self, array: int, *, is_wide: bool) -> str | None:
        """The text in a byte[] or char[]."""
        shape = self.array_shape(array) if self.class_name(array) in ("[B", "[C") else None
        if shape is None:
            return None
        data_at, item_bytes, count = shape
        if not 0 <= count * item_bytes <= _LONGEST_STRING:
            return None
        found = self.memory.read(array + data_at, count * item_bytes)
        if len(found) < count * item_bytes:
            return None
        return found.decode("utf-16-le" if is_wide else "latin-1", "replace")

    def _narrow_klass(self, address: int) -> int:
        if not self._is_compact:
            return u32(self.memory, address + _KLASS_AT) or 0
        mark = u64(self.memory, address) or 0
        if mark & _LOCK_BITS == _FORWARDED:
            mark = u64(self.memory, mark & ~_LOCK_BITS) or 0
        return mark >> self._klass_shift

    def _plain(self, pointer: int) -> int:
        """The address in a wide pointer, without ZGC's colours."""
        if not self._is_coloured:
            return pointer
        colours = pointer >> _REMAPPED_AT & _REMAPPED
        return pointer >> (_REMAPPED_AT + colours.bit_length()) if colours else 0

    def _is_bad(self, pointer: int) -> bool:
        """Whether ZGC would look where the object is now."""
        return self._bad_mask is not None and bool(pointer & (u64(self.memory, self._bad_mask) or 0))

    def _is_address(self, address: int) -> bool:
        return 4096 <= address < _ADDRESSES and address % _ALIGNMENT == 0


def _bad_mask(vm: VmStructs, memory: Memory, *, is_generational: bool) -> int | None:
    """The address of the mask of those colours with which ZGC has to look where an object is now; None: unknown."""
    masks = (
        (("Z", "_ZPointerLoadBadMask"),) if is_generational else (("X", "_XAddressBadMask"), ("Z", "_ZAddressBadMask"))
    )
    for owner, name in masks:
        place, mask = (vm.find((f"{owner}GlobalsForVMStructs", part)) for part in ("_instance_p", name))
        instance = u64(memory, place) if place is not None else None
        if instance and mask is not None:
            return u64(memory, instance + mask)
    return None


def _compressed(vm: VmStructs, memory: Memory, owner: str, long: str) -> tuple[int, int]:
    """The base and the shift of compressed pointers."""
    base_at, shift_at = (
        vm.at((owner, f"_{part}"), (owner, f"{long}._{part}"), ("Universe", f"{long}._{part}"))
        for part in ("base", "shift")
    )
    base, shift = u64(memory, base_at), i32(memory, shift_at)
    if base is None or shift is None or not 0 <= shift < 32:
        raise NotSupported("the base of compressed pointers in this JVM's memory cannot be read")
    return base, shift
