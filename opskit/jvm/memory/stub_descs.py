"""The names of HotSpot's stubs: its list of StubCodeDescs (runtime/stubCodeGenerator.hpp), which no table describes.

    next, group ("StubRoutines"), name ("jbyte_disjoint_arraycopy"), begin, end; until JDK 11 a number before `begin`

The head of the list is a variable of libjvm, near those of StubRoutines (1 to 17 KiB in JDK 8 to 28), and is searched for there.
Each of the list's items must name a group in libjvm and have its code in the code cache.
"""

from __future__ import annotations

from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING

from opskit.proc.memory import PAGE_BYTES, c_string
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_DESC, _WORD = Struct("<6Q"), Struct("<Q")
_BEGIN_AT = (3, 4)  # in words
_NEAR_PAGES = 32
_LOWEST, _HIGHEST = 1 << 44, 1 << 47  # where Linux places heaps and mappings
_MOST_DESCS, _FEWEST_DESCS = 4096, 16
_MOST_READS = 16 * _MOST_DESCS  # of all lists together
_LONGEST_NAME = 100


class StubDesc(NamedTuple):
    """A stub: its code from `begin` up to `end`."""

    begin: int
    end: int
    name: str


def read_stub_descs(structs: VmStructs, memory: Memory, low: int, high: int) -> list[StubDesc]:
    """The stubs in the code cache from `low` to `high`, by address; empty where the list was not found."""
    longest: list[StubDesc] = []
    reads_left = _MOST_READS
    for head in _heads(structs, memory, (low, high)):
        found = list(islice(_follow(structs, memory, head, (low, high)), reads_left))
        longest = max(longest, found, key=len)
        reads_left -= len(found)
    return sorted(longest) if len(longest) >= _FEWEST_DESCS else []


def _heads(structs: VmStructs, memory: Memory, code: tuple[int, int]) -> Iterator[int]:
    """What libjvm's variables refer to, if it may be a StubCodeDesc."""
    near = (structs.find(("StubRoutines", "_call_stub_return_address")) or 0) // PAGE_BYTES
    seen: set[int] = set()
    for page in range(near - _NEAR_PAGES, near + _NEAR_PAGES):
        data = memory.read(page * PAGE_BYTES, PAGE_BYTES)
        seen.update(
            word
            for (word,) in _WORD.iter_unpack(data[: len(data) // 8 * 8])
            if _LOWEST < word < _HIGHEST and not word & 7
        )
    for address in seen:
        if not structs.is_libjvm(address) and _begin(memory.read(address, _DESC.size), code) is not None:
            yield address


def _begin(desc: bytes, code: tuple[int, int]) -> int | None:
    """Which word of a StubCodeDesc has the begin of the code, followed by its end."""
    if len(desc) < _DESC.size:
        return None
    words, (low, high) = _DESC.unpack(desc), code
    return next((at for at in _BEGIN_AT if low <= words[at] <= words[at + 1] < high), None)


def _follow(structs: VmStructs, memory: Memory, address: int, code: tuple[int, int]) -> Iterator[StubDesc]:
    """The list from one item on, until one that makes no sense."""
    for _ in range(_MOST_DESCS):
        desc = memory.read(address, _DESC.size) if address else b""
        at = _begin(desc, code)
        if at is None:
            return
        words = _DESC.unpack(desc)
        name = c_string(memory, words[2], _LONGEST_NAME)
        if not structs.is_libjvm(words[1]) or not name:
            return
        yield StubDesc(words[at], words[at + 1], name.decode("latin-1").lstrip("_"))
        address = words[0]
