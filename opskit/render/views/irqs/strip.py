"""The heat strip of a terminal: a character for each CPU, a line for each sample. Readable without colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.quantities import number_ranges, short_duration
from opskit.render.report import Block, Listing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.analysis.irqs.moments import Moment

_IDLE, _LEVELS = "·", "▁▂▃▄▅▆▇█"
_WORTH = 0.01  # of a CPU's time; below it a CPU counts as idle
_MOST = 6  # samples: with the table and the verdict they fit on a terminal of 24 lines
_AGE = 8  # characters, with the space after it
_UNBOUNDED = 128  # cells of a line that no terminal bounds


def block(moments: Sequence[Moment]) -> Block[Moment | None]:
    """The last samples, the newest first, under a line that says what a cell is."""
    newest = [*reversed(moments[-_MOST:])]
    cpus = sorted(newest[0].loads)

    def lines(row: Moment | None, _detail: int, width: int | None) -> Sequence[str]:
        room = max(8, (width or _UNBOUNDED + _AGE) - _AGE)
        merged = -(-len(cpus) // room)
        if row is None:
            return [_legend(cpus, merged)]
        cells = [_level(_busiest(row.loads, cpus[at : at + merged])) for at in range(0, len(cpus), merged)]
        return [f"{_age(newest[0].at_s - row.at_s):<{_AGE}}{''.join(cells)}"]

    # No total: where older samples do not fit, nothing is missed.
    return Block([], [None, *newest], 0, listing=Listing(lines, 0, 2))


def _legend(cpus: Sequence[int], merged: int) -> str:
    of_each = (
        f"of CPU {number_ranges(cpus)}"
        if merged == 1
        else f"of CPU {number_ranges(cpus)}, the busiest of {merged} a cell"
    )
    return f"irq + softirq {of_each}: {_IDLE} under 1 %, {_LEVELS[0]} to {_LEVELS[-1]} 100 %"


def _busiest(loads: Mapping[int, float], cpus: Sequence[int]) -> float | None:
    known = [loads[cpu] for cpu in cpus if cpu in loads]
    return max(known) if known else None


def _level(load: float | None) -> str:
    """A space for a CPU that was offline."""
    if load is None:
        return " "
    return _IDLE if load < _WORTH else _LEVELS[min(int(load * len(_LEVELS)), len(_LEVELS) - 1)]


def _age(seconds: float) -> str:
    """`now`, `-0.5s`, `-4s`, `-2m10s`."""
    if seconds < 0.05:
        return "now"
    return f"-{round(seconds, 1):g}s" if seconds < 60 else f"-{short_duration(seconds)}"
