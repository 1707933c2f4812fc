"""The direct memory that a JVM has reserved, read in its memory: java.nio.Bits counts it in a static AtomicLong.

No attach, no safepoint; it needs ptrace rights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import OpskitError
from opskit.jvm.memory.objects import Objects
from opskit.jvm.memory.vmstructs import read_vmstructs
from opskit.proc.memory import ProcessMemory, u64

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

_BITS = "java/nio/Bits"
_COUNTERS = ("RESERVED_MEMORY", "reservedMemory")  # since JDK 17, before
_MOST_BYTES = 1 << 62


class DirectMemory:
    """The direct memory of one JVM, read repeatedly."""

    def __init__(self, fs: ProcFS, pid: int) -> None:
        self._fs, self._pid = fs, pid
        self._memory: ProcessMemory | None = None
        self._objects: Objects | None = None
        self._bits = 0

    def read_bytes(self) -> int | None:
        """Bytes reserved by java.nio.Bits; 0 before its first use. None: no right to read it, or an unknown layout."""
        try:
            objects = self._opened()
            self._bits = self._bits or objects.classes.boot_class(_BITS)
            return self._reserved(objects) if self._bits else self._unused(objects)
        except (OSError, OpskitError):
            return None

    def _opened(self) -> Objects:
        if self._memory is None or self._objects is None:
            self._memory = ProcessMemory(self._fs, self._pid)
            self._objects = Objects(read_vmstructs(self._fs, self._pid, self._memory), self._memory)
        self._memory.forget()
        return self._objects

    def _reserved(self, objects: Objects) -> int | None:
        """The value of the counter; None while Bits is initialized, and after the JVM has ended."""
        fields = objects.classes.fields(self._bits)
        found = next((fields[name] for name in _COUNTERS if name in fields), None)
        mirror = objects.mirror(self._bits)
        if found is None or not found.is_static or not mirror:
            return None
        counter = objects.reference(mirror + found.offset)
        value_at = objects.field_at(counter, "value")
        value = u64(objects.memory, value_at) if value_at else None
        return value if value is None or value < _MOST_BYTES else None

    def _unused(self, objects: Objects) -> int | None:
        """0 as long as the JVM is there: its memory is empty after its end."""
        return 0 if objects.classes.boot_class("java/lang/Object") else None
