"""Received packets by CPU: /proc/net/softnet_stat (net/core/net-procfs.c), a line of hexadecimal 32-bit counters for each CPU that is online.

08327861 00000000 00000025 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001 00000000 00000000

processed, dropped, time_squeeze, five unused, cpu_collision, received_rps (Linux 2.6.35), flow_limit_count (3.11),
backlog length, the CPU's number (both 5.14), lengths of the two parts of the backlog (6.0). They are the same in every network namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.counters import added_32
from opskit.proc.lines import lines_of
from opskit.quantities import hexadecimal
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_FEWEST = 3
_STEERED, _LIMITED, _BACKLOG, _CPU = 9, 10, 11, 12
_COUNTERS = 5


class SoftnetCpu(NamedTuple):
    """One CPU. `dropped`: its backlog was full. `squeezed`: time or budget ran out with packets left.

    `steered`: how often another CPU woke it for packets that RPS or RFS put into its backlog, which takes many at once. `backlog`:
    packets in it now.
    """

    processed: int
    dropped: int
    squeezed: int
    steered: int | None = None
    flow_limited: int | None = None
    backlog: int | None = None

    def since(self, before: SoftnetCpu) -> SoftnetCpu:
        """What has been added."""
        pairs = zip(self[:_COUNTERS], before[:_COUNTERS])
        added = [None if now is None or then is None else added_32(now, then) for now, then in pairs]
        return SoftnetCpu(added[0] or 0, added[1] or 0, added[2] or 0, added[3], added[4], self.backlog)


def parse_softnet_stat(text: str, online: Sequence[int]) -> dict[int, SoftnetCpu]:
    """The counters by CPU. Without its number in the line, the lines are those of the CPUs `online` in order.

    Where their numbers differ, a CPU has come or gone meanwhile: then nothing is known.
    """
    rows = [[hexadecimal(word) for word in line.split()] for line in lines_of(text)]
    has_number = [len(row) > _CPU for row in rows]
    if not all(has_number) and len(rows) != len(online):
        return {}
    found = {}
    for row, is_numbered, cpu in zip(rows, has_number, online if not all(has_number) else [0] * len(rows)):
        number = row[_CPU] if is_numbered else cpu
        if len(row) < _FEWEST or None in row or number is None:
            continue
        processed, dropped, squeezed = (value or 0 for value in row[:_FEWEST])
        found[number] = SoftnetCpu(
            processed, dropped, squeezed, *(_at(row, at) for at in (_STEERED, _LIMITED, _BACKLOG))
        )
    return found


def _at(row: Sequence[int | None], at: int) -> int | None:
    return row[at] if len(row) > at else None
