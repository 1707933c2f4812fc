"""The looks of a watch in a few numbers each, for the heat strip, the picture and JSON. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.analysis.irqs.result import Result


class Moment(NamedTuple):
    """One look. `at_s`: its end, since the watch began. `loads`: of interrupts and softirqs by CPU, 0 to 1. `drops`: packets a second (None: unknown)."""

    at_s: float
    loads: Mapping[int, float]
    drops: float | None = None


def moment_of(result: Result, at_s: float) -> Moment:
    """What to keep of a look."""
    drops = [row.cpu.drops for row in result.rows if row.cpu.drops is not None]
    loads = {row.cpu.use.cpu: row.load for row in result.rows}
    return Moment(at_s, loads, sum(drops) if drops else None)
