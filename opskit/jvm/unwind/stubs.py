"""Names of generated code that belongs to no Java method."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from opskit.jvm.unwind.instructions import CALL_BYTES, follows_call
from opskit.proc.memory import u64
from opskit.proc.unwind.cursor import Frame

if TYPE_CHECKING:
    from opskit.jvm.memory.code_cache import CodeBlob
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_LIBJVM_BYTES = 64 << 20
_ROUTINES = "StubRoutines"
_NOT_CODE = ("_table", "_count", "_return_address")


class Stubs:
    """The stubs of one JVM."""

    def __init__(self, structs: VmStructs, memory: Memory) -> None:
        self.memory, self._libjvm = memory, structs.libjvm
        found = {
            u64(memory, field.at) or 0: name.lstrip("_")
            for (owner, name), field in structs.fields.items()
            if owner == _ROUTINES and field.is_static and not any(word in name for word in _NOT_CODE)
        }
        self._begins = sorted(begin for begin in found if begin)
        self._names = [found[begin] for begin in self._begins]

    def frames(self, blob: CodeBlob, pc: int) -> tuple[Frame, ...]:
        """The stub's frame."""
        return (Frame(self._name(blob, pc), "stub"),)

    def _name(self, blob: CodeBlob, pc: int) -> str:
        at = bisect_right(self._begins, pc) - 1
        if at >= 0 and blob.begin <= self._begins[at]:
            return self._names[at]
        return blob.name or "[stub]"

    def is_native_return(self, pc: int) -> bool:
        """Whether a call in libjvm precedes the pc."""
        near = self._libjvm <= pc < self._libjvm + _LIBJVM_BYTES
        return near and follows_call(self.memory.read(pc - CALL_BYTES, CALL_BYTES))
