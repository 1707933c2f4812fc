"""The skeleton of a thread dump dialect's parser: find the dumps in a text, give equal stacks one object. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from opskit.jvm.dumps.thread_dump import StackTable
from opskit.quantities import hexadecimal, integer

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from opskit.jvm.dumps.thread_dump import Detail, ThreadDump


class Dialect:
    """A parser of one dialect. Keep it from dump to dump, so that equal stacks stay one object.

    A subclass names its first line (START), what every text with such a line contains (HINTS, quick to search), a
    thread's line where the head was not saved (FRAGMENT; None: such a text is not read), and has `dump`.
    """

    NAME: ClassVar[str]
    HINTS: ClassVar[tuple[bytes, ...]]
    START: ClassVar[re.Pattern[bytes]]
    FRAGMENT: ClassVar[re.Pattern[bytes] | None] = None

    def __init__(self, detail: Detail = "stacks") -> None:
        self.detail = detail
        self.with_locks = detail == "locks"
        self.table = StackTable()

    @classmethod
    def starts(cls, text: bytes) -> list[int]:
        """Offsets at which dumps of this dialect begin, rising."""
        return cls._offsets(text) if any(hint in text for hint in cls.HINTS) else []

    @classmethod
    def recognises(cls, text: bytes) -> bool:
        """Whether the text has a thread of this dialect, also where the head was not saved."""
        return cls.FRAGMENT is not None and cls.FRAGMENT.search(text) is not None

    def parse(self, text: bytes) -> list[ThreadDump]:
        """Every dump in a text that begins with one. Never raises."""
        return self._dumps(text, self._offsets(text) or ([0] if self.FRAGMENT else []))

    def dump(self, data: bytes) -> ThreadDump:
        """One dump, or a fragment of one."""
        raise NotImplementedError

    def _dumps(self, text: bytes, starts: list[int]) -> list[ThreadDump]:
        return [self.dump(text[start:end]) for start, end in zip(starts, [*starts[1:], len(text)])]

    @classmethod
    def _offsets(cls, text: bytes) -> list[int]:
        return [match.start() for match in cls.START.finditer(text)]


def blocks(header: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str, bool]]:
    """Each header with the text up to the next header, and whether it is the last one."""
    found = list(header.finditer(text))
    for number, match in enumerate(found, 1):
        is_last = number == len(found)
        yield match, text[match.end() : None if is_last else found[number].start()], is_last


def decoded(data: bytes) -> str:
    """UTF-8 as text; other bytes as surrogates."""
    return data.decode("utf-8", "surrogateescape")


def native_id(text: str) -> int | None:
    """A native thread id: hexadecimal behind 0x, decimal otherwise."""
    return hexadecimal(text) if text.startswith("0x") else integer(text)
