"""Read thread dumps of any dialect: find which JVM wrote each dump of a file. Pure."""

from __future__ import annotations

from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

from opskit.errors import BadInput, NothingFound
from opskit.jvm.dumps.dialect import decoded
from opskit.jvm.dumps.hotspot import HotSpotParser
from opskit.jvm.dumps.plain_text import is_binary, plain_text
from opskit.jvm.dumps.sniff import content_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.jvm.dumps.dialect import Dialect
    from opskit.jvm.dumps.thread_dump import Detail, ThreadDump

_SHORTEST_BYTES = 64  # of a dump; HotSpot's last line is shorter


class DumpReader:
    """A reader of dumps in every known dialect."""

    def __init__(self, detail: Detail = "stacks") -> None:
        """`detail`: "stacks" only, "threads" with the values of the headers, "locks" with the lock lines too."""
        self._detail: Detail = detail
        self._hotspot = HotSpotParser(detail)

    @cached_property
    def _others(self) -> tuple[Dialect, ...]:
        """The other dialects' parsers, imported when needed: a live JVM and most files never need them."""
        from opskit.jvm.dumps.actuator import ActuatorParser
        from opskit.jvm.dumps.dump_to_file import JsonParser, PlainParser
        from opskit.jvm.dumps.javacore import JavacoreParser
        from opskit.jvm.dumps.jrockit import JRockitParser
        from opskit.jvm.dumps.serviceability import ServiceabilityParser

        kinds = (ServiceabilityParser, JavacoreParser, PlainParser, JRockitParser, JsonParser, ActuatorParser)
        return tuple(kind(self._detail) for kind in kinds)

    def read(self, data: bytes, source: str) -> list[ThreadDump]:
        """The dumps in the data, in their order. Raises BadInput where there is none; `source` names it."""
        if not data or data.isspace():
            raise BadInput(source, "empty: no thread dump in it")
        if is_binary(data):
            raise BadInput(source, f"no thread dump: it is {content_type(decoded(data[:4096]))}")
        text = plain_text(data)
        dumps = [dump for parser, part in self._parts(text) for dump in parser.parse(part)]
        if any(dump.threads for dump in dumps):
            return dumps
        from opskit.jvm.dumps.javacore import JavacoreParser

        if any(dump.cut_off and dump.dialect != JavacoreParser.NAME for dump in dumps):
            return dumps
        if any(dump.dialect == JavacoreParser.NAME for dump in dumps):
            raise BadInput(source, "a javacore without threads: its THREADS section is missing or cut off")
        lines = data.count(b"\n") or text.count(b"\n")  # those of the file, where it has line feeds at all
        raise NothingFound("thread dump", source, lines + (not text.endswith(b"\n")))

    def _parts(self, text: bytes) -> Iterator[tuple[Dialect, bytes]]:
        """The text cut where the dialect changes; the text before the first dump belongs to it."""
        marks: list[tuple[int, Dialect]] = [(at, self._hotspot) for at in self._hotspot.starts(text)]
        for gap, end in self._hotspot.gaps(text):  # no other dump begins within its dumps, which may be very large
            if end - gap >= _SHORTEST_BYTES:
                part = text[gap:end]
                marks += [(gap + at, parser) for parser in self._others for at in parser.starts(part)]
        if not marks:
            # A fragment without a head: threads of some dialect's shape.
            if self._hotspot.recognises(text):
                yield self._hotspot, text
            else:
                yield from ((parser, text) for parser in self._others if parser.recognises(text))
            return
        marks.sort(key=lambda mark: mark[0])
        runs = [next(group) for _, group in groupby(marks, key=lambda mark: mark[1])]
        starts = [0, *(start for start, _ in runs[1:]), len(text)]
        for (_, parser), start, end in zip(runs, starts[:-1], starts[1:]):
            yield parser, text[start:end]
