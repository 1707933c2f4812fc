"""The classes of JDK 8, which does not describe their lists: one hash table of all loaders (classfile/dictionary.hpp)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.proc.memory import i32, u64

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_TABLE, _ENTRY = "BasicHashtable<mtInternal>", "BasicHashtableEntry<mtInternal>"
_MOST_BUCKETS, _MOST_CLASSES = 1 << 17, 200_000
_SHARED = 1  # a flag in the pointer to the next entry


def dictionary_classes(structs: VmStructs, memory: Memory) -> Iterator[tuple[int, int]]:
    """Each class with the data of a loader that knows it: its own, or one that has asked for it. Raises NotSupported."""
    table = u64(memory, structs.at(("SystemDictionary", "_dictionary"))) or 0
    count = i32(memory, table + structs.at((_TABLE, "_table_size"))) or 0
    buckets = u64(memory, table + structs.at((_TABLE, "_buckets"))) or 0
    next_at, klass_at = structs.at((_ENTRY, "_next")), structs.at(("IntptrHashtableEntry", "_literal"))
    loader_at = structs.at(("DictionaryEntry", "_loader_data"))
    data = memory.read(buckets, 8 * max(0, min(count, _MOST_BUCKETS)))
    left = _MOST_CLASSES
    for (entry,) in struct.iter_unpack("<Q", data[: len(data) // 8 * 8]):
        while entry and left:
            left -= 1
            klass, loader = u64(memory, entry + klass_at), u64(memory, entry + loader_at)
            if klass and loader:
                yield klass, loader
            entry = (u64(memory, entry + next_at) or 0) & ~_SHARED
