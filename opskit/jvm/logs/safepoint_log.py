r"""HotSpot's own account of its safepoints, of every generation, out of logs that hold much else.

JDK 6 and 7, 8, 9 to 12 (-XX:+PrintGCApplicationStoppedTime; -Xlog:safepoint); 6 has no second number:

    4.097: Total time for which application threads were stopped: 0.0002590 seconds, Stopping threads took: 0.0000513 seconds
    [0.030s][info][safepoint    ] Application time: 0.0012757 seconds
    [0.030s][info][safepoint    ] Entering safepoint region: RevokeBias
    [0.031s][info][safepoint    ] Leaving safepoint region
    [0.031s][info][safepoint    ] Total time for which application threads were stopped: 0.0000643 seconds, Stopping …

JDK 13 and later (-Xlog:safepoint), Cleanup, Leaving and Threads come and go:

    [0.079s][info][safepoint] Safepoint "ThreadDump", Time since last: 117785 ns, Reaching safepoint: 588577 ns,
        At safepoint: 28984 ns, Leaving safepoint: 10105 ns, Total: 627666 ns, Threads: 0 runnable, 10 total

Statistics tables (-XX:+PrintSafepointStatistics, in whole milliseconds; -Xlog:safepoint+stats, in ns from JDK 13 on):

             vmop                    [threads: total initially_running wait_to_block]    [time: spin block sync cleanup vmop] …
    1617.723: RevokeBias                       [    2450          6            117    ]      [     8    11    21    36     0    ]  6
    [0.079s][info ][safepoint,stats] ThreadDump        [         10            0 ][       588577      39089     627666 ]       0

-XX:+SafepointTimeout:

    # SafepointSynchronize::begin: Threads which did not reach the safepoint:
    # "main" #1 prio=5 os_prio=0 tid=0x00007f2a3c00b800 nid=0x2f03 runnable [0x0000000000000000]
    # SafepointSynchronize::begin: (End of list)

Sources: share/runtime/safepoint.cpp and share/services/runtimeService.cpp of each release.

A log of one dialect goes through a regular expression, chunk by chunk; whatever is mixed or odd goes line by line.
"""

from __future__ import annotations

import re
from itertools import repeat, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from opskit.quantities import integer, integers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_STOPPED_MARK = b"Total time for which application threads were stopped: "
_TOOK_MARK = b"Stopping threads took: "
_ENTERING_MARK = b"Entering safepoint region: "
_APPLICATION_MARK = b"Application time: "
_NANOS_HEAD = b'Safepoint "'
_NANOS_MARK = b", Time since last: "
_TIMEOUT_MARK = b"SafepointSynchronize::begin"
_SECONDS_END = b" seconds\n"
_LEAVING_END = b"Leaving safepoint region\n"
_TABLE_MARK = b"page_trap_count"
_ROW_MARK = b" [ "

# HotSpot prints seconds with seven digits behind the point, and nanoseconds of 64 bits.
_TIME = rb"(\d{1,10}[.,]\d{1,9})"
_POINT_TIME = rb"(\d{1,10}\.\d{1,9})"
_STOPPED = re.compile(_STOPPED_MARK + _TIME + rb" seconds(?:, Stopping threads took: " + _TIME + rb" seconds)?")
# A whole line of nothing else, and its stamps before it, which hold no T.
_STOPPED_LINE = re.compile(_STOPPED.pattern + rb"[ \r]*\n")
_HEADED_LINE = re.compile(rb"(?m:^)([^T\n]*)" + _STOPPED_LINE.pattern)
# The same for stops below a second, as nearly all are: digits become a number in half the time.
_SHORT_LINE = re.compile(
    rb"(?m:^)([^T\n]*)" + _STOPPED_MARK + rb"0\.(\d{7}) seconds, Stopping threads took: 0\.(\d{7}) seconds\n"
)
# Decorations alone, in which no mark fits (no S, no underscore, blanks only before a bracket closes), and a whole group of them.
_DECORATIONS = rb"\[[^ \n_S]*(?: +\]\[[^ \n_S]*)? *\] "
_GROUP = re.compile(
    rb"(?m:^)(?:" + _DECORATIONS + _APPLICATION_MARK + _POINT_TIME + rb" seconds\n)?"
    + _DECORATIONS + _ENTERING_MARK + rb"(\w+(?: \w+)*)\n"
    + _DECORATIONS + _LEAVING_END
    + _DECORATIONS + _STOPPED_MARK + _POINT_TIME + rb" seconds, " + _TOOK_MARK + _POINT_TIME + rb" seconds\n"
)  # fmt: skip
# One a line, so that what stands before it begins where the line does.
_STOPPED_ONCE = re.compile(_STOPPED.pattern + rb"[^\n]*")
_APPLICATION = re.compile(_APPLICATION_MARK + _TIME + rb" seconds")
_NANOS = re.compile(
    rb'Safepoint "([^"\n]+)", Time since last: (\d{1,19}) ns, Reaching safepoint: (\d{1,19}) ns, '
    rb"(?:[A-Z][A-Za-z ]*: \d+ ns, )*Total: (\d{1,19}) ns[^\n]*"  # one a line
)
# The same, one by one: keys in any order, and in quotes that a log shipper's JSON has escaped.
_NANOS_START = re.compile(rb'Safepoint \\?"([^"\\]*)\\?"(?=, Time since last: )')
_PAIR = re.compile(rb"(?<=, )([A-Z][A-Za-z ]*): (\d{1,19}) ns")
_BRACKETS = re.compile(rb"\[\s*((?:\d+\s+)*\d+)\s*\]\s*" * 2 + rb"(?:\[\s*((?:\d+\s+)*\d+)\s*\])?")
_NAME_BACKWARDS = re.compile(rb"\s+(\w+(?: \w+)*)")  # what stands before the brackets, read from its end
_LETTER = re.compile(rb"[A-Za-z_]")
_LATE_BEGIN, _LATE_END = b'# "', b'" '
_VERSIONS = (
    re.compile(rb"Version: (\d{1,3})(?!\d)[\w.+-]* \(\w+\)"),  # [gc,init]
    re.compile(rb"\bJRE \((?:[^)(]*?)1\.([5-8])\.0"),  # the head of a JDK 7 or 8 log
    re.compile(
        rb"\bJRE \((?:build )?(\d{2,3})[.+]"
    ),  # [info][…] OpenJDK 64-Bit Server VM (17.0.1+12) for … JRE (17.0.1+12)
)

_LONGEST_ROW_BYTES = 1000
_LONGEST_TAIL_BYTES = 1 << 16
_LONGEST_LINE_BYTES = 1 << 20
_MOST_NAMES = 1000  # of threads; a hostile log may have a new one in each line
_OTHERS = b"(others)"


class _Marked(NamedTuple):
    """A text whose safepoints all begin with the same mark."""

    text: bytes
    mark: bytes


class Batch:
    """Safepoints that stand next to each other in the log, as columns; all times in seconds.

    `operations`: None where the log does not name them. `ttsps_s`: None for the whole column or for one of them where the
    log does not say. `late`: which of them (by index) waited for which threads until a SafepointTimeout.
    """

    __slots__ = ("_application", "_heads", "_mark", "_text", "late", "operations", "stops_s", "ttsps_s")

    def __init__(
        self,
        stops_s: list[float],
        ttsps_s: Sequence[float | None] | None,
        operations: Sequence[bytes | None] | None,
        heads: Sequence[bytes] | _Marked,
        application: tuple[float, int] | None = None,
        late: Mapping[int, tuple[bytes, ...]] | None = None,
    ) -> None:
        """`heads`: what stands before each one, or where to cut it out when wanted.

        `application` as the property says; None: the text's `Application time` lines, when wanted.
        """
        self.stops_s, self.ttsps_s, self.operations = stops_s, ttsps_s, operations
        self.late = late or {}
        self._application = application
        self._heads: Sequence[bytes] | None
        if isinstance(heads, _Marked):
            (self._text, self._mark), self._heads = heads, None
        else:
            self._text, self._mark, self._heads = b"", b"", heads

    def __len__(self) -> int:
        return len(self.stops_s)

    @property
    def heads(self) -> Sequence[bytes]:
        """What stood before each one on its line: its stamps. Cut out of the text only when asked for."""
        if self._heads is None:
            pieces = self._text.split(self._mark)
            self._heads = [piece[piece.rfind(b"\n") + 1 :] for piece in pieces[:-1]]
        return self._heads

    def head(self, index: int) -> bytes:
        """The same for the first (0) or the last (-1) one alone, which is cheap."""
        if self._heads is not None:
            return self._heads[index]
        at = self._text.find(self._mark) if index == 0 else self._text.rfind(self._mark)
        return self._text[self._text.rfind(b"\n", 0, at) + 1 : at]

    @property
    def application(self) -> tuple[float, int]:
        """The time between safepoints that the log told, and how often it did."""
        if self._application is None:
            times = _floats(_APPLICATION.findall(self._text))
            self._application = sum(times), len(times)
        return self._application

    def select(self, indexes: Sequence[int]) -> Batch:
        """Only these of them. What lay between safepoints is left out."""
        heads = self.heads
        return Batch(
            [self.stops_s[index] for index in indexes],
            None if self.ttsps_s is None else [self.ttsps_s[index] for index in indexes],
            None if self.operations is None else [self.operations[index] for index in indexes],
            [heads[index] for index in indexes],
            (0.0, 0),
            {new: self.late[old] for new, old in enumerate(indexes) if old in self.late},
        )


class SafepointLog:
    """Reads chunks of one log after another; what it noticed besides the safepoints is in its attributes.

    `lines` counts all lines, `unreadable` those that look like a safepoint's and are none (cut, garbled), `first_unreadable`
    is (line number, text). `merged_rows`: rows of a statistics table about safepoints that have a line of their own.
    `coarse`: how many came from a table in whole milliseconds. `late_threads`: name -> how often a safepoint timed out on it;
    `unreached`: those that the last one in the log still waited for when the log ends.
    `jdk`: the feature release (8, 17, …) that the log names, else the range that its dialect tells, in `jdk_range`.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.unreadable = 0
        self.first_unreadable: tuple[int, bytes] | None = None
        self.merged_rows = 0
        self.coarse = 0
        self.timeouts = 0
        self.late_threads: dict[bytes, int] = {}
        self.unreached: tuple[bytes, ...] = ()
        self.jdk: int | None = None
        self.jdk_range: tuple[int, int | None] | None = None
        self._operation: bytes | None = None
        self._row: _Row | None = None
        self._rows = 0  # since the last safepoint with a line of its own
        self._stop_lines = False
        self._in_timeout = False
        self._late: list[bytes] = []
        self._fresh = True
        self._table = False  # a statistics table has begun
        self._groups = False  # operations have lines of their own

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
            yield _batch(last, 0.0, 0)
        self.unreached = tuple(self._late)
        self._operation, self._rows, self._in_timeout, self._late = None, 0, False, []

    def _chunk(self, text: bytes) -> Iterator[Batch]:
        if self._fresh:
            self._fresh = False
            self._look_for_version(text)
        lines = text.count(b"\n") + (not text.endswith(b"\n"))
        batch = self._at_once(text, lines)
        if batch is None:
            yield from self._line_by_line(text)
        else:
            self.lines += lines
            yield batch

    def _look_for_version(self, text: bytes) -> None:
        for pattern in _VERSIONS:
            if found := pattern.search(text[:65536]):
                self.jdk = integer(found[1])
                return

    def _at_once(self, text: bytes, lines: int) -> Batch | None:
        """All safepoints of the chunk where that is sure to be what its lines say one by one; None otherwise."""
        if self._operation is not None or self._row is not None or self._late or self._in_timeout:
            return None
        if text.count(b"T") == lines and (batch := self._stopped_alone(text, lines, one_t=True)) is not None:
            return batch
        if self._groups and not self._table and (batch := self._groups_alone(text, lines)) is not None:
            return batch
        stopped = text.count(_STOPPED_MARK)
        if stopped == lines:
            return self._stopped_alone(text, lines, one_t=False)
        nanos = text.count(_NANOS_MARK)
        # Where times, entering and leaving are all there is, one on each line, nothing else needs to be looked for.
        rest = lines - text.count(_LEAVING_END) - text.count(_ENTERING_MARK)
        plain = rest == text.count(_SECONDS_END) == stopped + text.count(_APPLICATION_MARK)
        if not plain and (self._table or _TABLE_MARK in text or _ROW_MARK in text or _TIMEOUT_MARK in text):
            return None
        if nanos:
            others = (_STOPPED_MARK, _APPLICATION_MARK, _ENTERING_MARK, _TOOK_MARK)
            return None if any(mark in text for mark in others) else self._nanos(text, nanos)
        return self._stopped_among_others(text, stopped)

    def _nanos(self, text: bytes, count: int) -> Batch | None:
        found = _NANOS.findall(text)
        if len(found) != count or text.count(_NANOS_HEAD) != count:
            return None
        self._stop_lines = True
        operations, gaps, reaching, totals = zip(*found)
        self._tell_range(13, None)
        return Batch(
            [nanos / 1e9 for nanos in map(int, totals)],
            [nanos / 1e9 for nanos in map(int, reaching)],
            operations,
            _Marked(text, _NANOS_HEAD),
            (sum(map(int, gaps)) / 1e9, count),
        )

    def _stopped_alone(self, text: bytes, lines: int, *, one_t: bool) -> Batch | None:
        """Nothing but such lines: as many marks as lines, and each line ends as they do. `one_t`: each has one T, its mark's."""
        if _APPLICATION_MARK in text:
            return None
        if one_t and len(found := _SHORT_LINE.findall(text)) == lines:
            heads, stops, ttsps = zip(*found)
            return self._stopped(text, _ten_millionths(stops), _ten_millionths(ttsps), None, heads, (0.0, 0))
        found = (_HEADED_LINE if one_t else _STOPPED_LINE).findall(text)
        if len(found) != lines:
            return None
        *before, stops, ttsps = zip(*found)
        heads = before[0] if one_t else _Marked(text, _STOPPED_MARK)
        return self._stopped(text, _floats(stops), _maybe_floats(ttsps), None, heads, (0.0, 0))

    def _groups_alone(self, text: bytes, lines: int) -> Batch | None:
        """Nothing but whole groups: three lines each, and one more where the time before it is told."""
        found = _GROUP.findall(text)
        if not found:
            return None
        gaps, operations, stops, ttsps = zip(*found)
        told = len(found) - gaps.count(b"")
        if 3 * len(found) + told != lines:
            return None
        gaps_s = list(map(float, gaps if told == len(found) else filter(None, gaps)))
        heads = _Marked(text, _STOPPED_MARK)
        return self._stopped(text, _floats(stops), _floats(ttsps), operations, heads, (sum(gaps_s), told))

    def _stopped_among_others(self, text: bytes, count: int) -> Batch | None:
        operations = None
        if _ENTERING_MARK in text:
            self._groups = True
            pieces = text.split(_ENTERING_MARK)[1:]
            if len(pieces) != count or not all(0 <= piece.find(b"\n") < piece.find(_STOPPED_MARK) for piece in pieces):
                return None
            operations = [_operation(piece[: piece.index(b"\n")]) for piece in pieces]
        found = _STOPPED_ONCE.findall(text)
        stops, ttsps = zip(*found) if found else ((), ())
        if len(found) != count or text.count(_TOOK_MARK) != count - ttsps.count(b""):
            return None
        return self._stopped(text, _floats(stops), _maybe_floats(ttsps), operations, _Marked(text, _STOPPED_MARK), None)

    def _stopped(
        self,
        text: bytes,
        stops_s: list[float],
        ttsps_s: Sequence[float | None] | None,
        operations: Sequence[bytes] | None,
        heads: Sequence[bytes] | _Marked,
        application: tuple[float, int] | None,
    ) -> Batch:
        batch = Batch(stops_s, ttsps_s, operations, heads, application)
        if stops_s:
            self._stop_lines = True
            if operations is not None:
                kinds = {(True, True)}
            elif b"][" in text:
                kinds = {(b"][" in head, ttsp is not None) for head, ttsp in zip(batch.heads, ttsps_s or repeat(None))}
            else:
                kinds = {(False, True)} if ttsps_s is not None else set()
                kinds |= {(False, False)} if ttsps_s is None or None in ttsps_s else set()
            for decorated, with_ttsp in kinds:
                self._tell_range(*_stopped_range(decorated=decorated, with_ttsp=with_ttsp))
        return batch

    def _tell_range(self, low: int, high: int | None) -> None:
        if self.jdk_range is not None:
            known_low, known_high = self.jdk_range
            low = min(low, known_low)
            high = None if high is None or known_high is None else max(high, known_high)
        self.jdk_range = (low, high)

    def _line_by_line(self, text: bytes) -> Iterator[Batch]:
        found: list[_Record] = []
        application_s, application_count = 0.0, 0
        lines = text.split(b"\n")
        if not lines[-1]:
            lines.pop()
        for line in lines:
            self.lines += 1
            if not line:
                continue
            told = [_number(number) for number in _APPLICATION.findall(line)] if _APPLICATION_MARK in line else ()
            application_s += sum(told)
            application_count += len(told)
            if _NANOS_MARK in line or _STOPPED_MARK in line:
                for record in self._own_line(line):
                    found.append(record)
                    if record.gap_s is not None:
                        application_s += record.gap_s
                        application_count += 1
            elif _ENTERING_MARK in line:
                self._groups = True
                self._operation = _operation(line.rpartition(_ENTERING_MARK)[2])
            elif _APPLICATION_MARK in line:
                pass
            elif _TOOK_MARK in line:  # its beginning went to another file
                self._could_not_read(line)
            elif self._in_timeout or _TIMEOUT_MARK in line:
                self._timeout_line(line)
            elif _TABLE_MARK in line:
                self._table = True  # from here on also rows that somebody has packed tighter
            elif b"[" in line and (self._table or _ROW_MARK in line) and (row := _row(line)) is not None:
                found += self._pending_row()
                self._row = row
                self._rows += 1
        if found or application_count:
            yield _batch(found, application_s, application_count)

    def _own_line(self, line: bytes) -> Iterator[_Record]:
        """The safepoints that a line tells; the last lines before it told their operation, row and timeout."""
        self._in_timeout, self._stop_lines = False, True
        records = [*_stopped_records(line), *_nanos_records(line)]
        if len(records) < line.count(_STOPPED_MARK) + line.count(_NANOS_MARK):
            self._could_not_read(line)
        for record in records:
            self._tell_range(
                *(13, None)
                if record.gap_s is not None
                else _stopped_range(
                    decorated=self._operation is not None or b"][" in record.head, with_ttsp=record.ttsp_s is not None
                )
            )
            operation = record.operation or self._operation
            if self._row is not None:
                if self._rows == 1:  # else they came all at once, and are about earlier ones
                    operation = operation or self._row.operation
                self.merged_rows += 1
            yield record._replace(operation=operation, late=tuple(self._late))
            self._operation, self._row, self._rows, self._late = None, None, 0, []

    def _could_not_read(self, line: bytes) -> None:
        self.unreadable += 1
        self.first_unreadable = self.first_unreadable or (self.lines, line)

    def _pending_row(self) -> list[_Record]:
        """The row that no line of its own has followed: a safepoint itself, unless each has a line in this log."""
        row, self._row = self._row, None
        if row is None:
            return []
        if self._stop_lines:
            self.merged_rows += 1
            return []
        self._tell_range(*row.jdk_range)
        self.coarse += row.coarse
        late, self._late = tuple(self._late), []
        return [_Record(row.head, row.operation, row.stop_s, row.ttsp_s, None, late)]

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
        last = text.rfind(_STOPPED_MARK, 0, end)
        after = text.find(b"\n", last) + 1 if last >= 0 else 0
        if after and end - after < _LONGEST_TAIL_BYTES:
            return after
    return end


class _Record(NamedTuple):
    head: bytes
    operation: bytes | None
    stop_s: float
    ttsp_s: float | None
    gap_s: float | None = None
    late: tuple[bytes, ...] = ()


class _Row(NamedTuple):
    head: bytes
    operation: bytes
    stop_s: float
    ttsp_s: float
    coarse: bool
    jdk_range: tuple[int, int | None]


def _batch(records: Sequence[_Record], application_s: float, application_count: int) -> Batch:
    ttsps = [record.ttsp_s for record in records]
    operations = [record.operation for record in records]
    return Batch(
        [record.stop_s for record in records],
        ttsps if any(ttsp is not None for ttsp in ttsps) else None,
        operations if any(operations) else None,
        [record.head for record in records],
        (application_s, application_count),
        {index: record.late for index, record in enumerate(records) if record.late},
    )


def _stopped_records(line: bytes) -> Iterator[_Record]:
    end = 0
    for match in _STOPPED.finditer(line):
        yield _Record(line[end : match.start()], None, _number(match[1]), _number(match[2]) if match[2] else None)
        end = match.end()


def _nanos_records(line: bytes) -> Iterator[_Record]:
    starts = list(_NANOS_START.finditer(line))
    before = 0
    for start, following in zip_longest(starts, starts[1:]):
        end = len(line) if following is None else following.start()
        pairs = {key: integer(nanos) for key, nanos in _PAIR.findall(line, start.end(1), end)}
        total, reaching, gap = (pairs.get(key) for key in (b"Total", b"Reaching safepoint", b"Time since last"))
        if total is not None and reaching is not None and gap is not None:
            yield _Record(line[before : start.start()], start[1], total / 1e9, reaching / 1e9, gap / 1e9)
        before = start.end()


def _late_thread(line: bytes) -> bytes | None:
    """`main` of `# "main" #1 prio=5 …`; a name may hold quotes."""
    begin, end = line.find(_LATE_BEGIN), line.rfind(_LATE_END)
    return line[begin + len(_LATE_BEGIN) : end] if 0 <= begin <= end - len(_LATE_BEGIN) else None


def _operation(text: bytes) -> bytes:
    """What stands after `Entering safepoint region: `, without the rest of a log shipper's JSON."""
    return text.partition(b"\\")[0].strip()


def _row(line: bytes) -> _Row | None:
    """A row of a statistics table; which table, its counts of numbers tell."""
    if len(line) >= _LONGEST_ROW_BYTES:
        return None
    for found in _BRACKETS.finditer(line):
        backwards = _NAME_BACKWARDS.match(line[: found.start()][::-1])
        words = backwards[1][::-1] if backwards else b""
        if letter := _LETTER.search(words):
            return _row_of(line, words[letter.start() :], found)
    return None


def _row_of(line: bytes, operation: bytes, found: re.Match[bytes]) -> _Row | None:
    threads, times, more = (integers((found[group] or b"").split()) for group in (1, 2, 3))
    if threads is None or times is None or more is None:
        return None
    head = line[: line.rfind(operation, 0, found.start())]
    if len(threads) == 2 and len(times) in (3, 4) and not more:  # 13 and later: sync [cleanup] vmop total, in ns
        return _Row(head, operation, times[-1] / 1e9, times[0] / 1e9, False, (13, None))
    if len(threads) != 3:
        return None
    if len(times) == 5 and not more:  # 8 to 12: spin block sync cleanup vmop, in ms; sync holds spin and block
        jdks = (9, 12) if b"][" in head else (7, 8)
        return _Row(head, operation, sum(times[2:]) / 1e3, times[2] / 1e3, True, jdks)
    if len(times) == 3 and len(more) == 2:  # 6 and 7: spin block sync, then vmop and the whole time
        return _Row(head, operation, max(more[1], times[2] + more[0]) / 1e3, times[2] / 1e3, True, (6, 7))
    return None


def _stopped_range(*, decorated: bool, with_ttsp: bool) -> tuple[int, int | None]:
    """The releases that write such a line. `decorated`: with -Xlog's decorations, or an operation on a line before it."""
    if decorated:
        return 9, 12
    return (8, 8) if with_ttsp else (5, 7)


def _number(text: bytes) -> float:
    """Of a time that a pattern has found, whose digits are few."""
    return float(text.replace(b",", b"."))  # a number


def _floats(texts: Sequence[bytes]) -> list[float]:
    try:
        return list(map(float, texts))
    except ValueError:  # decimal commas
        return [_number(text) for text in texts]


def _ten_millionths(digits: Sequence[bytes]) -> list[float]:
    """Seven digits after the point each; the division rounds as reading the whole number would."""
    return [number / 1e7 for number in map(int, digits)]


def _maybe_floats(texts: Sequence[bytes]) -> list[float | None] | list[float] | None:
    if b"" not in texts:
        return _floats(texts)
    return [_number(text) if text else None for text in texts] if any(texts) else None
