"""The pools of direct and mapped ByteBuffers, as their own classes count them: java.nio.Bits and sun.nio.ch.FileChannelImpl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.jvm.memory.direct_memory import atomic_long, static_long
from opskit.proc.memory import i32
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.jvm.memory.objects import Objects

_OBJECT, _BITS = "java/lang/Object", "java/nio/Bits"
# Since JDK 9 in capitals.
_DIRECT = (("COUNT", "count"), ("RESERVED_MEMORY", "reservedMemory"), ("TOTAL_CAPACITY", "totalCapacity"))
_UNMAPPER = "sun/nio/ch/FileChannelImpl$"
_MAPPED = (f"{_UNMAPPER}DefaultUnmapper", f"{_UNMAPPER}Unmapper")  # since JDK 14, before
_PERSISTENT = f"{_UNMAPPER}SyncUnmapper"
BUFFER_CLASSES = (_OBJECT, _BITS, *_MAPPED, _PERSISTENT)
_MOST_BUFFERS = 1 << 31


class BufferPool(NamedTuple):
    """One pool: buffers, bytes of memory, bytes of capacity."""

    buffers: int
    memory: int
    capacity: int


def read_buffer_pools(objects: Objects, found: Mapping[str, int]) -> dict[str, BufferPool | None]:
    """By the name of the pool; None: its values cannot be read now. `found`: those of BUFFER_CLASSES that are loaded."""
    if _OBJECT not in found:
        return {}
    bits = found.get(_BITS, 0)
    counted = [atomic_long(objects, bits, names) if bits else 0 for names in _DIRECT]
    mapped = next((found[name] for name in _MAPPED if name in found and _counts(objects, found[name])), 0)
    pools = {"direct": _pool(counted), "mapped": _mapped(objects, mapped)}
    pools["mapped - 'non-volatile memory'"] = _mapped(objects, found.get(_PERSISTENT, 0))
    return pools


def _counts(objects: Objects, klass: int) -> bool:
    """Whether the class has the counters: since JDK 14 the abstract Unmapper has none."""
    return "totalSize" in objects.classes.fields(klass)


def _mapped(objects: Objects, klass: int) -> BufferPool | None:
    if not klass:
        return BufferPool(0, 0, 0)
    field, mirror = objects.classes.fields(klass).get("count"), objects.mirror(klass, is_current=True)
    buffers = i32(objects.memory, mirror + field.offset) if field is not None and field.is_static and mirror else None
    return _pool([buffers, *(static_long(objects, klass, name) for name in ("totalSize", "totalCapacity"))])


def _pool(values: list[int | None]) -> BufferPool | None:
    known = [value for value in values if value is not None and value >= 0]
    return BufferPool(*known) if len(known) == len(values) and known[0] < _MOST_BUFFERS else None
