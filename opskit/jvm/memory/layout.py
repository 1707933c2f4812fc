"""Scalar fields of HotSpot's structures, by the types that its vmStructs table gives."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.jvm.memory.vmstructs import VmField, VmStructs

_WORD, _LONG, _UNSIGNED, _INT, _UNSIGNED_SHORT, _SHORT, _BYTE = map(Struct, ("<Q", "<q", "<I", "<i", "<H", "<h", "<b"))
_FORMS = {
    **dict.fromkeys(("address", "size_t", "uint64_t", "uintptr_t", "uintx", "julong", "intptr_t", "long"), _WORD),
    **dict.fromkeys(("int64_t", "jlong", "intx"), _LONG),
    **dict.fromkeys(("u4", "uint32_t", "unsigned int", "uint", "juint"), _UNSIGNED),
    **dict.fromkeys(("u2", "uint16_t", "unsigned short", "jushort"), _UNSIGNED_SHORT),
    **dict.fromkeys(("int16_t", "short"), _SHORT),
    **dict.fromkeys(("bool", "u1", "s1", "jbyte", "signed char", "CodeBlobKind"), _BYTE),
}


class Scalar(NamedTuple):
    """A number in a structure."""

    at: int
    form: Struct

    def of(self, data: bytes) -> int:
        """Its value in the bytes of the structure; 0 where they end before it."""
        if self.at < 0 or len(data) < self.at + self.form.size:
            return 0
        return self.form.unpack_from(data, self.at)[0]  # type: ignore[no-any-return]


def find_scalar(structs: VmStructs, *names: tuple[str, str], form: Struct | None = None) -> Scalar | None:
    """The first of these fields that the JVM has. `form`: where its declared type varies between JDKs."""
    field = structs.find_field(*names)
    return None if field is None else _scalar(field, form)


def scalar(structs: VmStructs, *names: tuple[str, str], form: Struct | None = None) -> Scalar:
    """As `find_scalar`. Raises NotSupported for a JVM without the field."""
    return _scalar(structs.field(*names), form)


def _scalar(field: VmField, form: Struct | None) -> Scalar:
    """By its type; of others than numbers and pointers, such as enums, four bytes."""
    name = field.type.removeprefix("const ").removeprefix("volatile ")
    return Scalar(field.at, form or (_WORD if name.endswith("*") else _FORMS.get(name, _INT)))
