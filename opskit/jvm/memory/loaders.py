"""The class loaders of a JVM, each with its list of classes: ClassLoaderDataGraph (classfile/classLoaderDataGraph.hpp)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.jvm.memory.dictionary import dictionary_classes
from opskit.proc.memory import i32, u64
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_MOST_LOADERS = 1 << 18
_MOST_BYTES = 1024  # up to the last field that is read
_OBJECT = ("SystemDictionary", "_well_known_klasses[SystemDictionary::Object_klass_knum]")  # up to JDK 15
_POINTER = struct.Struct("<Q").unpack_from
# JDK 15 and later; 12 to 14; 9 to 11. Such data belong to one hidden or anonymous class, not to a loader.
_OF_ONE_CLASS = ("_has_class_mirror_holder", "_is_unsafe_anonymous", "_is_anonymous")


class Loader(NamedTuple):
    """The data of one class loader. `klass`: the address of its newest class, 0: none yet."""

    address: int
    klass: int
    is_of_one_class: bool


def read_loaders(structs: VmStructs, memory: Memory) -> list[Loader] | None:
    """All loaders, the newest first, the boot loader last. None: the list cannot be followed to its end. Raises NotSupported."""
    data = u64(memory, structs.at(("ClassLoaderDataGraph", "_head")))
    next_at, klass_at = structs.at(("ClassLoaderData", "_next")), structs.find(("ClassLoaderData", "_klasses"))
    known = None
    if klass_at is None:  # JDK 8: hidden classes are in no table
        known = {loader: klass for klass, loader in dictionary_classes(structs, memory)}
    flag_at = structs.find(*(("ClassLoaderData", field) for field in _OF_ONE_CLASS))
    size = max(next_at, klass_at or 0, flag_at or 0) + 8
    found: list[Loader] = []
    seen: set[int] = set()
    if size > _MOST_BYTES:
        return None
    while data and len(found) < _MOST_LOADERS:
        content = memory.read(data, size)
        if len(content) < size or data in seen:
            return None
        seen.add(data)
        if known is not None:
            found.append(Loader(data, known.get(data, 0), data not in known))
        else:
            klass = _POINTER(content, klass_at or 0)[0]
            found.append(Loader(data, klass, flag_at is not None and content[flag_at] == 1))
        (data,) = _POINTER(content, next_at)
    return None if data or not found else found


class ClassSample(NamedTuple):
    """Some classes of each of some loaders: addresses of Klasses, and of their data in metaspace.

    `tables`: the addresses of virtual method tables with which the memory of a constant pool or a method begins.
    """

    klasses: frozenset[int]
    data: frozenset[int]
    tables: frozenset[int]


def sample_classes(structs: VmStructs, memory: Memory, loaders: list[Loader], most_loaders: int = 256) -> ClassSample:
    """Read some classes of the oldest and the newest loaders, more of the boot loader. Raises NotSupported."""
    klasses: set[int] = set()
    data: set[int] = set()
    tables: set[int] = set()
    at = _Offsets(structs)
    chosen = (
        loaders if len(loaders) <= most_loaders else [*loaders[: most_loaders // 2], *loaders[-most_loaders // 2 :]]
    )
    for number, loader in enumerate(reversed(chosen)):
        klasses.update(_classes(memory, loader.klass, at.next_link, 2 if number > 2 else 64))
    oldest = structs.find(_OBJECT)
    klasses.update(filter(None, (u64(memory, oldest) if oldest is not None else None,)))
    for klass in klasses:
        if (i32(memory, klass + at.layout) or 0) <= 0:  # an array's class has no more
            continue
        pool, methods = u64(memory, klass + at.constants) or 0, u64(memory, klass + at.methods) or 0
        method = (u64(memory, methods + 8) or 0) if methods and i32(memory, methods) else 0
        data.update(filter(None, (pool, methods, method)))
        tables.update(table for each in (pool, method) if each and (table := u64(memory, each)))
    return ClassSample(
        frozenset(klasses), frozenset(data), frozenset(table for table in tables if structs.is_libjvm(table))
    )


class _Offsets:
    def __init__(self, structs: VmStructs) -> None:
        self.next_link, self.layout = structs.find(("Klass", "_next_link")), structs.at(("Klass", "_layout_helper"))
        self.constants, self.methods = (structs.at(("InstanceKlass", field)) for field in ("_constants", "_methods"))


def _classes(memory: Memory, klass: int, next_at: int | None, most: int) -> Iterator[int]:
    for _ in range(most):
        if not klass:
            return
        yield klass
        klass = (u64(memory, klass + next_at) or 0) if next_at is not None else 0
