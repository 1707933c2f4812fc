"""The memory of a JVM's direct and mapped ByteBuffers, as its own classes count it, read in its memory.

java.nio.Bits counts direct memory in a static AtomicLong, sun.nio.ch.FileChannelImpl mapped files in static longs. No attach, no
safepoint; it needs ptrace rights. With ZGC a value is unknown while ZGC would look where an object is now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import OpskitError
from opskit.jvm.memory.objects import Objects
from opskit.jvm.memory.vmstructs import read_vmstructs
from opskit.proc.memory import ProcessMemory, u64
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

_OBJECT, _BITS = "java/lang/Object", "java/nio/Bits"
_COUNTERS = ("RESERVED_MEMORY", "reservedMemory")  # since JDK 17, before
_LIMITS = ("jdk/internal/misc/VM", "sun/misc/VM")  # since JDK 9, before
_LIMIT = "directMemory"
# Since JDK 14, before, for persistent memory. All have the static long totalSize.
_CHANNELS = tuple(f"sun/nio/ch/FileChannelImpl${name}" for name in ("DefaultUnmapper", "Unmapper", "SyncUnmapper"))
_TOTAL = "totalSize"
_MOST_BYTES = 1 << 62


class Buffers(NamedTuple):
    """Bytes of direct ByteBuffers, their limit, bytes of mapped ones. None: unknown."""

    direct_bytes: int | None = None
    direct_max_bytes: int | None = None
    mapped_bytes: int | None = None


def read_buffers(objects: Objects, boot: int = 0) -> Buffers:
    """What the classes count now; 0 where the class is not loaded. `boot`: the boot loader's data. Raises NotSupported."""
    found = objects.classes.boot_classes((_OBJECT, _BITS, *_LIMITS, *_CHANNELS), boot)
    if _OBJECT not in found:
        return Buffers()
    limits = [static_long(objects, found[name], _LIMIT) for name in _LIMITS if name in found]
    channels = [found[name] for name in _CHANNELS if name in found]
    mapped = [static_long(objects, each, _TOTAL) for each in channels if _counts(objects, each)]
    return Buffers(
        read_reserved(objects, found[_BITS]) if _BITS in found else 0,
        limits[0] if limits else None,
        None if None in mapped else sum(each or 0 for each in mapped),
    )


def _counts(objects: Objects, klass: int) -> bool:
    """Whether the class has the counter, or cannot be read: since JDK 14 the abstract Unmapper has none."""
    fields = objects.classes.fields(klass)
    return _TOTAL in fields or not fields


def static_long(objects: Objects, klass: int, name: str) -> int | None:
    """The value of a static field; None: it cannot be read now."""
    field, mirror = objects.classes.fields(klass).get(name), objects.mirror(klass, is_current=True)
    value = u64(objects.memory, mirror + field.offset) if field is not None and field.is_static and mirror else None
    return value if value is not None and value < _MOST_BYTES else None


def read_reserved(objects: Objects, bits: int) -> int | None:
    """The bytes that java.nio.Bits has reserved; None while it is initialized, and after the JVM has ended. `bits`: its class."""
    return atomic_long(objects, bits, _COUNTERS)


def atomic_long(objects: Objects, klass: int, names: tuple[str, ...]) -> int | None:
    """The value of the AtomicLong in the first of these static fields that the class has; None: it cannot be read now."""
    fields = objects.classes.fields(klass)
    found = next((fields[name] for name in names if name in fields), None)
    mirror = objects.mirror(klass, is_current=True)
    if found is None or not found.is_static or not mirror:
        return None
    counter = objects.moved(objects.reference(mirror + found.offset, is_current=True))
    value_at = objects.field_at(counter, "value")
    value = u64(objects.memory, value_at) if value_at else None
    return value if value is None or value < _MOST_BYTES else None


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
            return read_reserved(objects, self._bits) if self._bits else self._unused(objects)
        except (OSError, OpskitError):
            return None

    def _opened(self) -> Objects:
        if self._memory is None or self._objects is None:
            self._memory = ProcessMemory(self._fs, self._pid)
            self._objects = Objects(read_vmstructs(self._fs, self._pid, self._memory), self._memory)
        self._memory.forget()
        return self._objects

    def _unused(self, objects: Objects) -> int | None:
        """0 as long as the JVM is there: its memory is empty after its end."""
        return 0 if objects.classes.boot_class(_OBJECT) else None
