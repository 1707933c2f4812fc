"""Which JVM wrote a dump: each dialect is a small parser that gives the same records. A file may hold several."""

from __future__ import annotations

from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

from opskit.errors import BadInput, NothingFound
from opskit.jvm.dumps.hotspot import HotSpotParser
from opskit.jvm.dumps.sniff import looks_like
from opskit.jvm.dumps.text import is_binary, plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.jvm.dumps.thread_dump import Detail, ThreadDump

_SHORTEST_BYTES = 64  # nobody's dump is shorter; HotSpot's last line is


class DumpParser(Protocol):
    """A dialect. It is kept from dump to dump, so that equal stacks stay one object."""

    @staticmethod
    def starts(text: bytes) -> list[int]:
        """Where dumps of this dialect begin: offsets, rising."""

    def parse(self, text: bytes) -> list[ThreadDump]:
        """Every dump in a text that begins with one; never raises."""


class TextParser(DumpParser, Protocol):
    """A dialect whose threads are known by their own lines, also where the head was not saved."""

    @staticmethod
    def recognises(text: bytes) -> bool:
        """Whether there is a thread of this dialect in the text."""


class DumpReader:
    """Reads dumps of every known dialect from the bytes of files."""

    def __init__(self, detail: Detail = "stacks") -> None:
        """`detail`: "stacks" alone, "threads" also with what the headers say, "locks" with the lock lines too."""
        self._detail: Detail = detail
        self._hotspot = HotSpotParser(detail)

    @cached_property
    def _other_texts(self) -> tuple[TextParser, ...]:
        """The other dialects' parsers: a live JVM, and most files, never need them."""
        from opskit.jvm.dumps.dump_to_file import PlainParser
        from opskit.jvm.dumps.javacore import JavacoreParser
        from opskit.jvm.dumps.jrockit import JRockitParser
        from opskit.jvm.dumps.serviceability import ServiceabilityParser

        kinds = (ServiceabilityParser, JavacoreParser, PlainParser, JRockitParser)
        return tuple(kind(self._detail) for kind in kinds)

    @cached_property
    def _others(self) -> tuple[DumpParser, ...]:
        from opskit.jvm.dumps.actuator import ActuatorParser
        from opskit.jvm.dumps.dump_to_file import JsonParser

        return (*self._other_texts, JsonParser(self._detail), ActuatorParser(self._detail))

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
        if any(dump.threads for dump in dumps):
            return dumps
        from opskit.jvm.dumps.javacore import NAME as JAVACORE

        if any(dump.cut_off and dump.dialect != JAVACORE for dump in dumps):
            return dumps
        if any(dump.dialect == JAVACORE for dump in dumps):
            raise BadInput(source, "a javacore without threads: its THREADS section is missing or cut off")
        lines = data.count(b"\n") or text.count(b"\n")  # those of the file, where it has line feeds at all
        raise NothingFound("thread dump", source, lines + (not text.endswith(b"\n")))

    def _parts(self, text: bytes) -> Iterator[tuple[DumpParser, bytes]]:
        """The text cut where the dialect changes; what stands before the first dump belongs to it."""
        marks: list[tuple[int, DumpParser]] = [(at, self._hotspot) for at in self._hotspot.starts(text)]
        for gap, end in self._hotspot.gaps(text):  # within its dumps nobody else begins, and they may be very large
            if end - gap >= _SHORTEST_BYTES:
                part = text[gap:end]
                marks += [(gap + at, parser) for parser in self._others for at in parser.starts(part)]
        if not marks:
            # A fragment without any head: threads of some dialect's shape.
            candidates: tuple[TextParser, ...] = (
                (self._hotspot,) if self._hotspot.recognises(text) else self._other_texts
            )
            yield from ((parser, text) for parser in candidates if parser.recognises(text))
            return
        marks.sort(key=lambda mark: mark[0])
        runs = [next(group) for _, group in groupby(marks, key=lambda mark: mark[1])]
        starts = [0, *(start for start, _ in runs[1:]), len(text)]
        for (_, parser), start, end in zip(runs, starts[:-1], starts[1:]):
            yield parser, text[start:end]
