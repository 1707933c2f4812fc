"""Safepoints in lines of their own, in seconds or nanoseconds, and in rows of statistics tables.

JDK 6 to 8 (-XX:+PrintGCApplicationStoppedTime; 6 has no second number), then 9 to 12 (-Xlog:safepoint), 13 and later (one line):
4.097: Total time for which application threads were stopped: 0.0002590 seconds, Stopping threads took: 0.0000513 seconds
[0.030s][info][safepoint    ] Application time: 0.0012757 seconds
[0.030s][info][safepoint    ] Entering safepoint region: RevokeBias
[0.031s][info][safepoint    ] Leaving safepoint region
[0.031s][info][safepoint    ] Total time for which application threads were stopped: 0.0000643 seconds, Stopping …
[0.079s][info][safepoint] Safepoint "ThreadDump", Time since last: 117785 ns, Reaching safepoint: 588577 ns, (Cleanup: …,)
At safepoint: 28984 ns, (Leaving safepoint: 10105 ns,) Total: 627666 ns(, Threads: 0 runnable, 10 total)

Statistics tables: -XX:+PrintSafepointStatistics in whole milliseconds; -Xlog:safepoint+stats, in nanoseconds from JDK 13 on.

vmop                    [threads: total initially_running wait_to_block]    [time: spin block sync cleanup vmop] …
1617.723: RevokeBias                       [    2450          6            117    ]      [     8    11    21    36     0    ]  6
[0.079s][info ][safepoint,stats] ThreadDump        [         10            0 ][       588577      39089     627666 ]       0
"""

from __future__ import annotations

import re
from itertools import repeat, zip_longest
from typing import TYPE_CHECKING

from opskit.jvm.logs.safepoints.batch import APPLICATION_MARK, TIME, Batch, Marked, Record, floats
from opskit.jvm.logs.timestamps import seconds_in
from opskit.quantities import integer, integers
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STOPPED_MARK = b"Total time for which application threads were stopped: "
TOOK_MARK = b"Stopping threads took: "
ENTERING_MARK = b"Entering safepoint region: "
LEAVING_END = b"Leaving safepoint region\n"
SECONDS_END = b" seconds\n"

_POINT_TIME = rb"(\d{1,10}\.\d{1,9})"
_STOPPED = re.compile(STOPPED_MARK + TIME + rb" seconds(?:, Stopping threads took: " + TIME + rb" seconds)?")
# A whole line of nothing else, and its stamps before it, which hold no T.
_STOPPED_LINE = re.compile(_STOPPED.pattern + rb"[ \r]*\n")
_HEADED_LINE = re.compile(rb"(?m:^)([^T\n]*)" + _STOPPED_LINE.pattern)
# The same for stops below a second, as nearly all are: digits become a number in half the time.
_SHORT_LINE = re.compile(
    rb"(?m:^)([^T\n]*)" + STOPPED_MARK + rb"0\.(\d{7}) seconds, Stopping threads took: 0\.(\d{7}) seconds\n"
)
# Only decorations, in which no mark fits (no S, no underscore, blanks only before a bracket closes), and a whole group.
_DECORATIONS = rb"\[[^ \n_S]*(?: +\]\[[^ \n_S]*)? *\] "
_GROUP = re.compile(
    rb"(?m:^)(?:" + _DECORATIONS + APPLICATION_MARK + _POINT_TIME + rb" seconds\n)?"
    + _DECORATIONS + ENTERING_MARK + rb"(\w+(?: \w+)*)\n"
    + _DECORATIONS + LEAVING_END
    + _DECORATIONS + STOPPED_MARK + _POINT_TIME + rb" seconds, " + TOOK_MARK + _POINT_TIME + rb" seconds\n"
)  # fmt: skip
# One a line, so that the text before it begins where the line does.
_STOPPED_ONCE = re.compile(_STOPPED.pattern + rb"[^\n]*")

NANOS_MARK = b", Time since last: "
_NANOS_HEAD = b'Safepoint "'
_NANOS_LINE = re.compile(
    rb'Safepoint "([^"\n]+)", Time since last: (\d{1,19}) ns, Reaching safepoint: (\d{1,19}) ns, '
    rb"(?:[A-Z][A-Za-z ]*: \d+ ns, )*Total: (\d{1,19}) ns[^\n]*"  # one a line
)
# The same, one by one: keys in any order, and in quotes that a log shipper's JSON has escaped.
_NANOS_START = re.compile(rb'Safepoint \\?"([^"\\]*)\\?"(?=, Time since last: )')
_NANOS_PAIR = re.compile(rb"(?<=, )([A-Z][A-Za-z ]*): (\d{1,19}) ns")

TABLE_MARK = b"page_trap_count"
ROW_MARK = b" [ "
_ROW_BRACKETS = re.compile(rb"\[\s*((?:\d+\s+)*\d+)\s*\]\s*" * 2 + rb"(?:\[\s*((?:\d+\s+)*\d+)\s*\])?")
_ROW_NAME_BACKWARDS = re.compile(rb"\s+(\w+(?: \w+)*)")  # the text before the brackets, read from its end
_ROW_LETTER = re.compile(rb"[A-Za-z_]")
_LONGEST_ROW_BYTES = 1000


def stops_alone(text: bytes, lines: int, *, one_t: bool) -> Batch | None:
    """Nothing but such lines: as many marks as lines, and each line ends as they do. `one_t`: each has one T, its mark's."""
    if APPLICATION_MARK in text:
        return None
    if one_t and len(found := _SHORT_LINE.findall(text)) == lines:
        heads, stops, ttsps = zip(*found)
        return Batch(_ten_millionths(stops), _ten_millionths(ttsps), None, heads, (0.0, 0))
    found = (_HEADED_LINE if one_t else _STOPPED_LINE).findall(text)
    if len(found) != lines:
        return None
    *before, stops, ttsps = zip(*found)
    heads = before[0] if one_t else Marked(text, STOPPED_MARK)
    return Batch(floats(stops), _maybe_floats(ttsps), None, heads, (0.0, 0))


def groups_alone(text: bytes, lines: int) -> Batch | None:
    """Nothing but whole groups: three lines each, and one more with the time before it."""
    found = _GROUP.findall(text)
    if not found:
        return None
    gaps, operations, stops, ttsps = zip(*found)
    timed = len(found) - gaps.count(b"")
    if 3 * len(found) + timed != lines:
        return None
    gaps_s = list(map(float, gaps if timed == len(found) else filter(None, gaps)))
    return Batch(floats(stops), floats(ttsps), operations, Marked(text, STOPPED_MARK), (sum(gaps_s), timed))


def stops_among_others(text: bytes, count: int) -> Batch | None:
    """Lines of any other kind between them; where operations are named, one before each stop."""
    operations = None
    if ENTERING_MARK in text:
        pieces = text.split(ENTERING_MARK)[1:]
        if len(pieces) != count or not all(0 <= piece.find(b"\n") < piece.find(STOPPED_MARK) for piece in pieces):
            return None
        operations = [operation_of(piece[: piece.index(b"\n")]) for piece in pieces]
    found = _STOPPED_ONCE.findall(text)
    stops, ttsps = zip(*found) if found else ((), ())
    if len(found) != count or text.count(TOOK_MARK) != count - ttsps.count(b""):
        return None
    return Batch(floats(stops), _maybe_floats(ttsps), operations, Marked(text, STOPPED_MARK))


def stops_in_line(line: bytes) -> Iterator[Record]:
    """The stops in one line: a shipper may have joined several."""
    end = 0
    for match in _STOPPED.finditer(line):
        yield Record(line[end : match.start()], None, seconds_in(match[1]), seconds_in(match[2]) if match[2] else None)
        end = match.end()


def operation_of(text: bytes) -> bytes:
    """The text after `Entering safepoint region: `, without the rest of a log shipper's JSON."""
    return text.partition(b"\\")[0].strip()


def releases_of(batch: Batch, text: bytes) -> set[tuple[int, int | None]]:
    """The releases that write the lines of a batch, each as a range."""
    if batch.operations is not None:
        kinds = {(True, True)}
    elif b"][" in text:
        kinds = {(b"][" in head, ttsp is not None) for head, ttsp in zip(batch.heads, batch.ttsps_s or repeat(None))}
    else:
        kinds = {(False, True)} if batch.ttsps_s is not None else set()
        kinds |= {(False, False)} if batch.ttsps_s is None or None in batch.ttsps_s else set()
    return {releases(decorated=decorated, with_ttsp=with_ttsp) for decorated, with_ttsp in kinds}


def releases(*, decorated: bool, with_ttsp: bool) -> tuple[int, int | None]:
    """The releases that write such a line. `decorated`: with -Xlog's decorations, or an operation on a line before it."""
    if decorated:
        return 9, 12
    return (8, 8) if with_ttsp else (5, 7)


def _ten_millionths(digits: Sequence[bytes]) -> list[float]:
    """Seconds, by the seven digits after the point; the division rounds as float() of the whole number does."""
    return [digit / 1e7 for digit in map(int, digits)]


def _maybe_floats(texts: Sequence[bytes]) -> list[float | None] | list[float] | None:
    if b"" not in texts:
        return floats(texts)
    return [seconds_in(text) if text else None for text in texts] if any(texts) else None


def nanos_alone(text: bytes, count: int) -> Batch | None:
    """All safepoints of a text in nanoseconds with `count` marks; None where one of them has another form."""
    found = _NANOS_LINE.findall(text)
    if len(found) != count or text.count(_NANOS_HEAD) != count:
        return None
    operations, gaps, *columns = zip(*found)
    reaching_s, totals_s = ([nanos / 1e9 for nanos in map(int, column)] for column in columns)
    return Batch(totals_s, reaching_s, operations, Marked(text, _NANOS_HEAD), (sum(map(int, gaps)) / 1e9, count))


def nanos_in_line(line: bytes) -> Iterator[Record]:
    """The safepoints in nanoseconds in one line."""
    starts = list(_NANOS_START.finditer(line))
    before = 0
    for start, following in zip_longest(starts, starts[1:]):
        end = len(line) if following is None else following.start()
        pairs = {key: integer(nanos) for key, nanos in _NANOS_PAIR.findall(line, start.end(1), end)}
        total, reaching, gap = (pairs.get(key) for key in (b"Total", b"Reaching safepoint", b"Time since last"))
        if total is not None and reaching is not None and gap is not None:
            yield Record(line[before : start.start()], start[1], total / 1e9, reaching / 1e9, gap / 1e9)
        before = start.end()


class Row(NamedTuple):
    """A row. `coarse`: in whole milliseconds. `releases`: the range of those that write such a table."""

    head: bytes
    operation: bytes
    stop_s: float
    ttsp_s: float
    coarse: bool
    releases: tuple[int, int | None]


def row_in(line: bytes) -> Row | None:
    """The row in a line; its counts of numbers say which table it is of."""
    if len(line) >= _LONGEST_ROW_BYTES:
        return None
    for found in _ROW_BRACKETS.finditer(line):
        backwards = _ROW_NAME_BACKWARDS.match(line[: found.start()][::-1])
        words = backwards[1][::-1] if backwards else b""
        if letter := _ROW_LETTER.search(words):
            return _row_of(line, words[letter.start() :], found)
    return None


def _row_of(line: bytes, operation: bytes, found: re.Match[bytes]) -> Row | None:
    threads, times, more = (integers((found[group] or b"").split()) for group in (1, 2, 3))
    if threads is None or times is None or more is None:
        return None
    head = line[: line.rfind(operation, 0, found.start())]
    if len(threads) == 2 and len(times) in (3, 4) and not more:  # 13 and later: sync [cleanup] vmop total, in ns
        return Row(head, operation, times[-1] / 1e9, times[0] / 1e9, False, (13, None))
    if len(threads) != 3:
        return None
    if len(times) == 5 and not more:  # 8 to 12: spin block sync cleanup vmop, in ms; sync holds spin and block
        jdks = (9, 12) if b"][" in head else (7, 8)
        return Row(head, operation, sum(times[2:]) / 1e3, times[2] / 1e3, True, jdks)
    if len(times) == 3 and len(more) == 2:  # 6 and 7: spin block sync, then vmop and the whole time
        return Row(head, operation, max(more[1], times[2] + more[0]) / 1e3, times[2] / 1e3, True, (6, 7))
    return None
