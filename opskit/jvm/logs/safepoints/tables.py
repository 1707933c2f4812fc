"""Statistics tables: -XX:+PrintSafepointStatistics in whole milliseconds; -Xlog:safepoint+stats, in nanoseconds from JDK 13 on.

vmop                    [threads: total initially_running wait_to_block]    [time: spin block sync cleanup vmop] …
1617.723: RevokeBias                       [    2450          6            117    ]      [     8    11    21    36     0    ]  6
[0.079s][info ][safepoint,stats] ThreadDump        [         10            0 ][       588577      39089     627666 ]       0
"""

from __future__ import annotations

import re

from opskit.quantities import integers
from opskit.records import NamedTuple

TABLE_MARK = b"page_trap_count"
ROW_MARK = b" [ "
_BRACKETS = re.compile(rb"\[\s*((?:\d+\s+)*\d+)\s*\]\s*" * 2 + rb"(?:\[\s*((?:\d+\s+)*\d+)\s*\])?")
_NAME_BACKWARDS = re.compile(rb"\s+(\w+(?: \w+)*)")  # the text before the brackets, read from its end
_LETTER = re.compile(rb"[A-Za-z_]")
_LONGEST_BYTES = 1000


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
    if len(line) >= _LONGEST_BYTES:
        return None
    for found in _BRACKETS.finditer(line):
        backwards = _NAME_BACKWARDS.match(line[: found.start()][::-1])
        words = backwards[1][::-1] if backwards else b""
        if letter := _LETTER.search(words):
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
