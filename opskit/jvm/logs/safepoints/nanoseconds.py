"""Safepoints in nanoseconds: JDK 13 and later (-Xlog:safepoint); Cleanup, Leaving and Threads come and go.

[0.079s][info][safepoint] Safepoint "ThreadDump", Time since last: 117785 ns, Reaching safepoint: 588577 ns,
At safepoint: 28984 ns, Leaving safepoint: 10105 ns, Total: 627666 ns, Threads: 0 runnable, 10 total
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from opskit.jvm.logs.safepoints.batch import Batch, Marked, Record
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Iterator

NANOS_MARK = b", Time since last: "
_HEAD = b'Safepoint "'
_LINE = re.compile(
    rb'Safepoint "([^"\n]+)", Time since last: (\d{1,19}) ns, Reaching safepoint: (\d{1,19}) ns, '
    rb"(?:[A-Z][A-Za-z ]*: \d+ ns, )*Total: (\d{1,19}) ns[^\n]*"  # one a line
)
# The same, one by one: keys in any order, and in quotes that a log shipper's JSON has escaped.
_START = re.compile(rb'Safepoint \\?"([^"\\]*)\\?"(?=, Time since last: )')
_PAIR = re.compile(rb"(?<=, )([A-Z][A-Za-z ]*): (\d{1,19}) ns")


def whole_lines(text: bytes, count: int) -> Batch | None:
    """All safepoints of a text that has `count` marks; None where one of them is odd."""
    found = _LINE.findall(text)
    if len(found) != count or text.count(_HEAD) != count:
        return None
    operations, gaps, reaching, totals = zip(*found)
    return Batch(
        [nanos / 1e9 for nanos in map(int, totals)],
        [nanos / 1e9 for nanos in map(int, reaching)],
        operations,
        Marked(text, _HEAD),
        (sum(map(int, gaps)) / 1e9, count),
    )


def safepoints_in_line(line: bytes) -> Iterator[Record]:
    """The safepoints in one line."""
    starts = list(_START.finditer(line))
    before = 0
    for start, following in zip_longest(starts, starts[1:]):
        end = len(line) if following is None else following.start()
        pairs = {key: integer(nanos) for key, nanos in _PAIR.findall(line, start.end(1), end)}
        total, reaching, gap = (pairs.get(key) for key in (b"Total", b"Reaching safepoint", b"Time since last"))
        if total is not None and reaching is not None and gap is not None:
            yield Record(line[before : start.start()], start[1], total / 1e9, reaching / 1e9, gap / 1e9)
        before = start.end()
