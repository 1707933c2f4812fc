"""Which JVM wrote a dump: each dialect is a small parser that gives the same records. A file may hold several."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Protocol

from opskit.errors import BadInput, NothingFound
from opskit.jvm.actuatordump import ActuatorParser
from opskit.jvm.dumptext import is_binary, plain_text
from opskit.jvm.dumptofile import JsonParser, PlainParser
from opskit.jvm.hotspotdump import HotSpotParser
from opskit.jvm.javacore import NAME as JAVACORE
from opskit.jvm.javacore import JavacoreParser
from opskit.jvm.jrockitdump import JRockitParser
from opskit.jvm.lookslike import looks_like
from opskit.jvm.serviceabilitydump import ServiceabilityParser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.jvm.threaddump import Detail, ThreadDump


class DumpParser(Protocol):
    """A dialect. It is kept from dump to dump, so that equal stacks stay one object."""

    @staticmethod
    def starts(text: bytes) -> list[int]:
        """Where dumps of this dialect begin: offsets, rising."""

    def parse(self, text: bytes) -> list[ThreadDump]:
        """Every dump in a text that begins with one; never raises."""


class DumpReader:
    """Reads dumps of every known dialect from the bytes of files."""

    def __init__(self, detail: Detail = "stacks") -> None:
        """`detail`: "stacks" alone, "threads" also with what the headers say, "locks" with the lock lines too."""
        self._hotspot = HotSpotParser(detail)
        self._agent = ServiceabilityParser(detail)
        self._parsers: tuple[DumpParser, ...] = (
            self._hotspot,
            JavacoreParser(detail),
            self._agent,
            PlainParser(detail),
            JsonParser(detail),
            ActuatorParser(detail),
            JRockitParser(detail),
        )

    def read(self, data: bytes, source: str) -> list[ThreadDump]:
        """The dumps in the data, in their order. Raises BadInput where there is none; `source` names it."""
        if not data or data.isspace():
            raise BadInput(source, "empty: no thread dump in it")
        if is_binary(data):
            raise BadInput(
                source, f"no thread dump: it is {looks_like(data[:4096].decode('utf-8', 'surrogateescape'))}"
            )
        text = plain_text(data)
        dumps = [dump for parser, part in self._parts(text) for dump in parser.parse(part)]
        if any(dump.threads or (dump.cut_off and dump.dialect != JAVACORE) for dump in dumps):
            return dumps
        if any(dump.dialect == JAVACORE for dump in dumps):
            raise BadInput(source, "a javacore without threads: its THREADS section is missing or cut off")
        raise NothingFound("thread dump", source, text.count(b"\n") + (not text.endswith(b"\n")))

    def _parts(self, text: bytes) -> Iterator[tuple[DumpParser, bytes]]:
        """The text cut where the dialect changes; what stands before the first dump belongs to it."""
        marks = sorted((at, number) for number, parser in enumerate(self._parsers) for at in parser.starts(text))
        if not marks:
            # A fragment without any head: threads of HotSpot's shape, or the agent's.
            if self._hotspot.recognises(text):
                yield self._hotspot, text
            elif self._agent.recognises(text):
                yield self._agent, text
            return
        runs = [(number, next(group)[0]) for number, group in groupby(marks, key=lambda mark: mark[1])]
        starts = [0, *(start for _, start in runs[1:]), len(text)]
        for (number, _), start, end in zip(runs, starts[:-1], starts[1:], strict=True):
            yield self._parsers[number], text[start:end]
