"""The system properties of a JVM now, read in its heap: java.lang.System.props. Nothing is sent to it, no class is loaded.

Since JDK 9 a Properties keeps a ConcurrentHashMap, before it is a Hashtable itself; both have chains of nodes with key and value.
A bin of many keys is a tree, whose nodes are chained as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.memory import u64

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.jvm.memory.objects import Objects
    from opskit.jvm.memory.vmstructs import VmStructs

_SYSTEM = (
    ("vmClasses", "_klasses[static_cast<int>(vmClassID::System_klass_knum)]"),
    ("SystemDictionary", "_well_known_klasses[SystemDictionary::System_klass_knum]"),
    ("SystemDictionary", "_well_known_klasses[SystemDictionary::SystemDictionary_System_klass_knum]"),
)
_MOST_BUCKETS, _MOST_PROPERTIES, _MOST_IN_BUCKET = 1 << 15, 1 << 14, 1 << 10
_TREE, _MOVED = (
    "java/util/concurrent/ConcurrentHashMap$TreeBin",
    "java/util/concurrent/ConcurrentHashMap$ForwardingNode",
)
_STRING = "java/lang/String"


def read_system_properties(structs: VmStructs, objects: Objects) -> dict[str, str] | None:
    """Those whose keys and values are texts. None: not found, or a collector or the JVM has moved them meanwhile."""
    at = structs.find(*_SYSTEM)
    system = (u64(objects.memory, at) or 0) if at is not None else objects.classes.boot_class("java/lang/System")
    field = objects.classes.fields(system).get("props") if system else None
    mirror = objects.mirror(system, is_current=True) if system else 0
    if field is None or not mirror:
        return None
    properties = objects.moved(objects.reference(mirror + field.offset, is_current=True))
    table = _follow(objects, _follow(objects, properties, "map") or properties, "table")
    found: dict[str, str] = {}
    for number, node in enumerate(_nodes(objects, table)):
        if not node or number > _MOST_PROPERTIES:
            return None
        key, value = (_follow(objects, node, *names) for names in (("key",), ("val", "value")))
        if objects.class_name(key) != _STRING or (value and objects.class_name(value) != _STRING):
            if not key or not objects.class_name(key):
                return None
            continue
        name, text = objects.string(key), objects.string(value)
        if name is None or text is None:
            return None
        found[name] = text
    return found or None


def _follow(objects: Objects, address: int, *names: str) -> int:
    """What the first of these fields that the object has refers to; 0: nothing, or it cannot be read now."""
    for name in names:
        found = objects.get(address, name, is_current=True) if address else 0
        if found:
            return objects.moved(found)
    return 0


def _nodes(objects: Objects, table: int) -> Iterator[int]:
    """The nodes of a hash table; 0 where it cannot be followed, as it grows."""
    for first in _elements(objects, table):
        node = first
        if objects.class_name(node) == _TREE:
            node = _follow(objects, node, "first")
        elif objects.class_name(node) == _MOVED:  # while the table grows
            yield 0
            return
        for _ in range(_MOST_IN_BUCKET):
            if not node:
                break
            yield node
            node = _follow(objects, node, "next")


def _elements(objects: Objects, array: int) -> Iterator[int]:
    """The objects in an Object[]."""
    shape = objects.array_shape(array)
    if shape is None:
        return
    data_at, item_bytes, count = shape
    if not 0 <= count <= _MOST_BUCKETS:
        return
    for number in range(count):
        found = objects.reference(array + data_at + item_bytes * number, is_current=True)
        if found:
            yield objects.moved(found)
