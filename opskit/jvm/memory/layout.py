"""Scalar fields of HotSpot's structures, by the types that its vmStructs table gives."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.jvm.memory.vmstructs import VmStructs

_WORD, _INT, _UNSIGNED_SHORT, _SHORT, _BYTE = map(Struct, ("<Q", "<i", "<H", "<h", "<b"))
_FORMS = {
    **dict.fromkeys(("address", "size_t", "uint64_t", "intptr_t", "long"), _WORD),
    **dict.fromkeys(("u2", "uint16_t", "unsigned short", "jushort"), _UNSIGNED_SHORT),
    **dict.fromkeys(("int16_t", "short"), _SHORT),
    **dict.fromkeys(("bool", "u1", "s1", "jbyte", "signed char", "volatile signed char", "CodeBlobKind"), _BYTE),
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
    name = next((name for name in names if name in structs.fields), None)
    if name is None:
        return None
    field = structs.fields[name]
    return Scalar(field.at, form or (_WORD if field.type.endswith("*") else _FORMS.get(field.type, _INT)))


def scalar(structs: VmStructs, *names: tuple[str, str], form: Struct | None = None) -> Scalar:
    """As `find_scalar`. Raises NotSupported for a JVM without the field."""
    found = find_scalar(structs, *names, form=form)
    if found is None:
        raise NotSupported(f"this JVM's libjvm does not describe {'::'.join(names[0])} in its vmStructs table")
    return found
