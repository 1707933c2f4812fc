"""Which JVM wrote a dump: each dialect is a small parser that gives the same records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from opskit.errors import BadInput, NothingFound
from opskit.jvm.dumptext import is_binary, plain_text
from opskit.jvm.hotspotdump import Detail, HotSpotParser

if TYPE_CHECKING:
    from opskit.jvm.threaddump import ThreadDump


class DumpParser(Protocol):
    """A dialect. It is kept from dump to dump, so that equal stacks stay one object."""

    @staticmethod
    def recognises(text: bytes) -> bool:
        """Whether there is a thread of this dialect in the text."""

    def parse(self, text: bytes) -> list[ThreadDump]:
        """Every dump in the text; never raises for text that it recognised."""


class DumpReader:
    """Reads dumps of every known dialect from the bytes of files."""

    def __init__(self, detail: Detail = "stacks") -> None:
        """`detail`: "stacks" alone, "threads" also with what the headers say, "locks" with the lock lines too."""
        self._parsers: tuple[DumpParser, ...] = (HotSpotParser(detail),)

    def read(self, data: bytes, source: str) -> list[ThreadDump]:
        """The dumps in the data, in their order. Raises BadInput where there is none; `source` names it."""
        if not data or data.isspace():
            raise BadInput(source, "empty: no thread dump in it")
        if is_binary(data):
            raise BadInput(source, "a binary file, no thread dump; give the text that jstack or kill -3 wrote")
        text = plain_text(data)
        for parser in self._parsers:
            if parser.recognises(text):
                return parser.parse(text)
        raise NothingFound("thread dump", source, text.count(b"\n") + (not text.endswith(b"\n")))
