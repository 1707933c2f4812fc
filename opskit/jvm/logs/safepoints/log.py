r"""Read HotSpot's safepoints of every release from logs that contain other lines too.

The lines are described in lines.py; -XX:+SafepointTimeout adds:

    # SafepointSynchronize::begin: Threads which did not reach the safepoint:
    # "main" #1 prio=5 os_prio=0 tid=0x00007f2a3c00b800 nid=0x2f03 runnable [0x0000000000000000]
    # SafepointSynchronize::begin: (End of list)

Sources: share/runtime/safepoint.cpp and share/services/runtimeService.cpp of each release.

A chunk in one dialect is read by one regular expression, any other chunk line by line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.jvm.logs.safepoints import lines as own
from opskit.jvm.logs.safepoints.batch import APPLICATION, APPLICATION_MARK, Batch, Record, batch_of
from opskit.jvm.logs.safepoints.lines import ENTERING_MARK, NANOS_MARK, ROW_MARK, STOPPED_MARK, TABLE_MARK, TOOK_MARK
from opskit.jvm.logs.timestamps import seconds_in
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TIMEOUT_MARK = b"SafepointSynchronize::begin"
_LATE_BEGIN, _LATE_END = b'# "', b'" '
_VERSIONS = (
    re.compile(rb"Version: (\d{1,3})(?!\d)[\w.+-]* \(\w+\)"),  # [gc,init]
    re.compile(rb"\bJRE \((?:[^)(]*?)1\.([5-8])\.0"),  # the head of a JDK 7 or 8 log
    # [info][…] OpenJDK 64-Bit Server VM (17.0.1+12) for … JRE (17.0.1+12)
    re.compile(rb"\bJRE \((?:build )?(\d{2,3})[.+]"),
)
_LONGEST_TAIL_BYTES = 1 << 16
_LONGEST_LINE_BYTES = 1 << 20
_MOST_NAMES = 1000  # of threads; a hostile log may have a new one in each line
_OTHERS = b"(others)"


class SafepointLog:
    """A reader of logs, one after another, in chunks. Its attributes say what the logs contain besides safepoints.

    `lines` counts all lines, `unreadable` those that look like a safepoint's but are not (cut, garbled),
    `first_unreadable` is (line number, text). `coarse`: how many came from a table in whole milliseconds.
    `late_threads`: name -> how often a safepoint timed out on it; `unreached`: those that the last one in the log still
    waited for when the log ends. `jdk`: the feature release (8, 17, …) that the log names, else `jdk_range` has those
    that write its dialect.
    """

    def __init__(self) -> None:
        self.lines = self.unreadable = self.coarse = self.timeouts = 0
        self.first_unreadable: tuple[int, bytes] | None = None
        self.late_threads: dict[bytes, int] = {}
        self.unreached: tuple[bytes, ...] = ()
        self.jdk: int | None = None
        self.jdk_range: tuple[int, int | None] | None = None
        self._operation: bytes | None = None
        self._row: own.Row | None = None
        self._rows = 0  # since the last safepoint with a line of its own
        self._late: list[bytes] = []
        self._fresh = True
        self._table = False  # a statistics table has begun
        self._groups = False  # operations have lines of their own
        self._stop_lines = self._in_timeout = False

    def read(self, chunks: Iterable[bytes]) -> Iterator[Batch]:
        """The safepoints of one log, which comes in chunks of any size; the line numbers start anew."""
        self.lines, self._fresh, self._table = 0, True, False
        waiting: list[bytes] = []  # no whole line yet
        size = 0
        for chunk in chunks:
            waiting.append(chunk)
            size += len(chunk)
            if b"\n" not in chunk and size <= _LONGEST_LINE_BYTES:
                continue
            text = b"".join(waiting)
            end = _cut(text, groups=self._groups)
            waiting, size = [text[end:]], len(text) - end
            if end:
                yield from self._chunk(text[:end])
        if rest := b"".join(waiting):
            yield from self._chunk(rest)
        if last := self._pending_row():
            yield batch_of(last, 0.0, 0)
        self.unreached = tuple(self._late)
        self._operation, self._rows, self._in_timeout, self._late = None, 0, False, []

    def _chunk(self, text: bytes) -> Iterator[Batch]:
        if self._fresh:
            self._fresh = False
            versions = filter(None, (pattern.search(text[:65536]) for pattern in _VERSIONS))
            self.jdk = next((integer(found[1]) for found in versions), self.jdk)
        lines = text.count(b"\n") + (not text.endswith(b"\n"))
        batch = self._at_once(text, lines)
        if batch is None:
            yield from self._line_by_line(text)
        else:
            self.lines += lines
            yield batch

    def _at_once(self, text: bytes, lines: int) -> Batch | None:
        """All safepoints of the chunk by one regular expression; None where its lines must be read one by one."""
        if self._operation is not None or self._row is not None or self._late or self._in_timeout:
            return None
        batch = own.stops_alone(text, lines, one_t=True) if text.count(b"T") == lines else None
        if batch is None and self._groups and not self._table:
            batch = own.groups_alone(text, lines)
        if batch is not None:
            return self._noted(batch, text)
        stopped = text.count(STOPPED_MARK)
        if stopped == lines:
            return self._noted(own.stops_alone(text, lines, one_t=False), text)
        if nanos := text.count(NANOS_MARK):
            others = (STOPPED_MARK, APPLICATION_MARK, ENTERING_MARK, TOOK_MARK)
            if self._may_have_rows(text) or any(mark in text for mark in others):
                return None
            return self._noted(own.nanos_alone(text, nanos))
        # Where times, entering and leaving are all there is, one on each line, nothing else needs to be looked for.
        entering = text.count(ENTERING_MARK)
        rest = lines - text.count(own.LEAVING_END) - entering
        plain = rest == text.count(own.SECONDS_END) == stopped + text.count(APPLICATION_MARK)
        if not plain and self._may_have_rows(text):
            return None
        self._groups |= entering > 0
        return self._noted(own.stops_among_others(text, stopped), text)

    def _noted(self, batch: Batch | None, seconds: bytes | None = None) -> Batch | None:
        """Note the releases that write the batch's lines; return it. `seconds`: their text; None: they are in nanoseconds."""
        if batch is not None and batch.stops_s:
            self._stop_lines = True
            for low, high in {(13, None)} if seconds is None else own.releases_of(batch, seconds):
                self._note_releases(low, high)
        return batch

    def _may_have_rows(self, text: bytes) -> bool:
        return self._table or TABLE_MARK in text or ROW_MARK in text or _TIMEOUT_MARK in text

    def _note_releases(self, low: int, high: int | None) -> None:
        if self.jdk_range is not None:
            known_low, known_high = self.jdk_range
            low = min(low, known_low)
            high = None if high is None or known_high is None else max(high, known_high)
        self.jdk_range = (low, high)

    def _line_by_line(self, text: bytes) -> Iterator[Batch]:
        found: list[Record] = []
        application_s, application_count = 0.0, 0
        lines = text.split(b"\n")
        if not lines[-1]:
            lines.pop()
        for line in lines:
            self.lines += 1
            gaps = [seconds_in(time) for time in APPLICATION.findall(line)] if APPLICATION_MARK in line else []
            records = self._records(line) if line else ()
            for record in records:
                found.append(record)
                if record.gap_s is not None:
                    gaps.append(record.gap_s)
            application_s += sum(gaps)
            application_count += len(gaps)
        if found or application_count:
            yield batch_of(found, application_s, application_count)

    def _records(self, line: bytes) -> Iterable[Record]:
        """The safepoints that are known with this line; what it says of later ones is kept."""
        if NANOS_MARK in line or STOPPED_MARK in line:
            return self._own_line(line)
        if ENTERING_MARK in line:
            self._groups = True
            self._operation = own.operation_of(line.rpartition(ENTERING_MARK)[2])
        elif APPLICATION_MARK in line:
            pass
        elif TOOK_MARK in line:  # its beginning went to another file
            self._could_not_read(line)
        elif self._in_timeout or _TIMEOUT_MARK in line:
            self._timeout_line(line)
        elif TABLE_MARK in line:
            self._table = True  # from here on rows with less white space count, too
        elif b"[" in line and (self._table or ROW_MARK in line) and (row := own.row_in(line)) is not None:
            before = self._pending_row()
            self._row = row
            self._rows += 1
            return before
        return ()

    def _own_line(self, line: bytes) -> Iterator[Record]:
        """The safepoints in a line; the lines before it had their operation, row and timeout."""
        self._in_timeout, self._stop_lines = False, True
        records = [*own.stops_in_line(line), *own.nanos_in_line(line)]
        if len(records) < line.count(STOPPED_MARK) + line.count(NANOS_MARK):
            self._could_not_read(line)
        for record in records:
            if record.gap_s is not None:
                self._note_releases(13, None)
            else:
                decorated = self._operation is not None or b"][" in record.head
                self._note_releases(*own.releases(decorated=decorated, with_ttsp=record.ttsp_s is not None))
            operation = record.operation or self._operation
            if self._row is not None and self._rows == 1:  # else they came all at once, and are about earlier ones
                operation = operation or self._row.operation
            yield record._replace(operation=operation, late=tuple(self._late))
            self._operation, self._row, self._rows, self._late = None, None, 0, []

    def _could_not_read(self, line: bytes) -> None:
        self.unreadable += 1
        self.first_unreadable = self.first_unreadable or (self.lines, line)

    def _pending_row(self) -> list[Record]:
        """The last row, where no line about its safepoint follows it; none in a log that has such lines."""
        row, self._row = self._row, None
        if row is None or self._stop_lines:
            return []
        self._note_releases(*row.releases)
        self.coarse += row.coarse
        late, self._late = tuple(self._late), []
        return [Record(row.head, row.operation, row.stop_s, row.ttsp_s, None, late)]

    def _timeout_line(self, line: bytes) -> None:
        if _TIMEOUT_MARK in line:
            self._in_timeout = b"End of list" not in line
            self.timeouts += b"Timeout detected" in line
        elif (name := _late_thread(line)) is not None:
            if len(self.late_threads) >= _MOST_NAMES and name not in self.late_threads:
                name = _OTHERS
            self.late_threads[name] = self.late_threads.get(name, 0) + 1
            if len(self._late) < _MOST_NAMES:
                self._late.append(name)


def _cut(text: bytes, *, groups: bool) -> int:
    """Where to cut: after a whole line, and where operations have lines of their own, after the time that belongs to one."""
    end = text.rfind(b"\n") + 1
    if not end:
        return len(text) if len(text) > _LONGEST_LINE_BYTES else 0
    if groups:
        last = text.rfind(STOPPED_MARK, 0, end)
        after = text.find(b"\n", last) + 1 if last >= 0 else 0
        if after and end - after < _LONGEST_TAIL_BYTES:
            return after
    return end


def _late_thread(line: bytes) -> bytes | None:
    """`main` of `# "main" #1 prio=5 …`; a name may hold quotes."""
    begin, end = line.find(_LATE_BEGIN), line.rfind(_LATE_END)
    return line[begin + len(_LATE_BEGIN) : end] if 0 <= begin <= end - len(_LATE_BEGIN) else None
