"""The skeleton of a thread dump dialect's parser, and the helpers of the dialects in JSON. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from opskit.jvm.dumps.thread_dump import StackTable
from opskit.jvm.progress import onwards
from opskit.quantities import hexadecimal, integer

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from json import JSONDecoder

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
    """A native thread id: hexadecimal after 0x, decimal otherwise."""
    return hexadecimal(text) if text.startswith("0x") else integer(text)


def _json_decoder() -> JSONDecoder:
    from json import JSONDecoder

    return JSONDecoder(strict=False)  # some writers leave raw control characters in text


def decode(text: str) -> Any:
    """The JSON value at the beginning of the text; None where it is cut off or damaged."""
    try:
        return _json_decoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def whole_objects(beginning: re.Pattern[str], text: str) -> Iterator[tuple[Any, str | None]]:
    """The objects that begin as the pattern says, up to the first one that is not whole.

    A match of the pattern's group 1 is not an object: it names the container of the objects after it.
    """
    decoder = _json_decoder()
    container = None
    at = 0
    while match := beginning.search(text, at):
        at = match.end()
        if match.lastindex:
            container = match[1]
            continue
        try:
            entry, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            return
        at = onwards(match.start(), end)
        yield entry, container


def as_list(value: object) -> list[Any]:
    """A list of a JSON document; empty for any other value."""
    return value if isinstance(value, list) else []


def as_id(value: object) -> int | None:
    """A thread's id in a JSON document, where it is a number or text."""
    return integer(str(value)) if isinstance(value, (str, int)) else None


def as_word(value: object) -> str | None:
    """Text or a whole number as text; None for any other value."""
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    return None
