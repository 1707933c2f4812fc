"""The lists of MemoryService in a libjvm without a table of symbols: found among its static variables by what they refer to.

A list begins with its length and its room; the first pool is the code cache's, and the first manager is that of the code cache.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.jvm.memory.memory_service import MANAGERS, POOLS
from opskit.proc.memory import PAGE_BYTES, c_string, u64

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.files.smaps import Region
    from opskit.proc.memory import Memory

_FIRST = ((MANAGERS, 96, b"CodeCacheManager"), (POOLS, 8, b"Code"))  # where the name of the first one is referred to
_LENGTHS = struct.Struct("<ii")
_MOST_ITEMS, _MOST_ROOM, _MOST_BYTES, _LONGEST_NAME = 16, 1024, 4 << 20, 64
_LOWEST, _HIGHEST = 1 << 32, 1 << 47


def find_lists(structs: VmStructs, memory: Memory, regions: Sequence[Region]) -> dict[str, int]:
    """The addresses of the variables that refer to the lists, under their mangled names, as far as they are found."""
    found: dict[str, tuple[int, int]] = {}
    length_at = structs.find(("GrowableArrayBase", "_len"), ("GenericGrowableArray", "_len"))
    data_at = structs.find(("GrowableArray<int>", "_data"))
    if length_at is None or data_at is None:
        return {}
    for address, word in _words(structs, memory, regions):
        lengths = memory.read(word + length_at, _LENGTHS.size)
        if len(lengths) < _LENGTHS.size:
            continue
        length, room = _LENGTHS.unpack(lengths)
        if 0 < length <= _MOST_ITEMS and length <= room <= _MOST_ROOM:
            name = _list_at(structs, memory, u64(memory, word + data_at) or 0)
            if name is not None:  # there is also a list of the pools of the code cache alone
                found[name] = max(found.get(name, (0, 0)), (length, address))
    return {name: address for name, (_, address) in found.items()}


def _list_at(structs: VmStructs, memory: Memory, data: int) -> str | None:
    """Which list has its items there; None: neither."""
    first = u64(memory, data) or 0
    for name, name_at, text in _FIRST:
        at = (u64(memory, first + name_at) or 0) if first else 0
        if structs.is_libjvm(at) and (c_string(memory, at, _LONGEST_NAME) or b"").startswith(text):
            return name
    return None


def _words(structs: VmStructs, memory: Memory, regions: Sequence[Region]) -> Iterator[tuple[int, int]]:
    """The static variables that may be pointers to what malloc gave, and their addresses."""
    for begin, end in _variables(structs, regions):
        for page in range(begin, min(end, begin + _MOST_BYTES), PAGE_BYTES):
            data = memory.read(page, PAGE_BYTES)
            for number, (word,) in enumerate(struct.iter_unpack("<Q", data[: len(data) // 8 * 8])):
                if _LOWEST <= word < _HIGHEST and word % 8 == 0 and not begin <= word < end:
                    yield page + 8 * number, word


def _variables(structs: VmStructs, regions: Sequence[Region]) -> Iterator[tuple[int, int]]:
    """Where libjvm has its variables: what is writable of it, and the anonymous memory right behind that."""
    of_libjvm = next((each.inode for each in regions if each.start == structs.libjvm), 0)
    before = 0
    for each in regions:
        is_own = bool(of_libjvm) and each.inode == of_libjvm and structs.is_libjvm(each.start)
        if each.permissions.startswith("rw") and (is_own or (not each.inode and each.start == before)):
            yield each.start, each.end
        before = each.end if is_own else 0
