"""HotSpot's Symbols: the names of classes, methods and fields, in constant pools and in structures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.memory import PAGE_BYTES, u16, u64

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_LONGEST, _MOST_KEPT = 4096, 100_000
_POINTER_TAG = 1  # of a constant pool's entry that is not resolved (JDK 8)


class Symbols:
    """The symbols of one JVM. A text is read once by its address until `forget`: a symbol may be freed."""

    def __init__(self, vm: VmStructs, memory: Memory) -> None:
        self._memory = memory
        self._length = vm.at(("Symbol", "_length"))
        self._body = vm.at(("Symbol", "_body[0]"), ("Symbol", "_body"))
        self._pool = vm.size("ConstantPool")
        self._texts: dict[int, str] = {}

    def forget(self) -> None:
        """Read all texts anew: symbols may have been freed, and their memory used again."""
        self._texts.clear()

    def text(self, address: int) -> str | None:
        """The text of a symbol, `java/lang/String`; None where there is none."""
        known = self._texts.get(address)
        if known is None and address:
            known = self._read(address)
            if known is not None:
                if len(self._texts) >= _MOST_KEPT:
                    self._texts.clear()
                self._texts[address] = known
        return known

    def at(self, pointer: int) -> str | None:
        """The text of the symbol that is referred to from this address."""
        return self.text(u64(self._memory, pointer) or 0)

    def length_test(self, lengths: Collection[int]) -> Callable[[int], bool]:
        """A function that tells whether the symbol at an address has one of these lengths in bytes."""
        read, at, wanted = self._memory.read, self._length, frozenset(lengths)
        pages: dict[int, memoryview] = {}

        def has_length(address: int) -> bool:
            number, place = divmod(address + at, PAGE_BYTES)
            page = pages.get(number)
            if page is None:
                data = read(number * PAGE_BYTES, PAGE_BYTES)
                page = pages[number] = memoryview(data if len(data) == PAGE_BYTES else bytes(PAGE_BYTES)).cast("H")
            return page[place >> 1] in wanted

        return has_length

    def constant(self, pool: int, index: int) -> str | None:
        """The text at an index of a constant pool (u2), whose entries follow its header."""
        return self.text((u64(self._memory, pool + self._pool + 8 * index) or 0) & ~_POINTER_TAG)

    def _read(self, address: int) -> str | None:
        length = u16(self._memory, address + self._length)
        if not length or length > _LONGEST:
            return None
        found = self._memory.read(address + self._body, length)
        return found.decode("utf-8", "replace") if len(found) == length else None
