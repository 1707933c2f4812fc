"""How often a CPU quota held a process up (cgroup v2 and v1 cpu.stat; Documentation/scheduler/sched-bwc.rst).

nr_periods 12034
nr_throttled 17
throttled_usec 40341       (v1: throttled_time, in ns)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.cgroup.tree import ancestry
from opskit.proc.fs import DENIED, GONE, ProcFS

if TYPE_CHECKING:
    from collections.abc import Mapping

Periods = dict[str, tuple[int, int]]


def read_periods(fs: ProcFS, pid: int) -> Periods | None:
    """(periods, throttled periods) of each cgroup above the process that counts them; None where no cgroup can be seen."""
    try:
        cgroups = ancestry(fs, pid, "cpu")
    except (*GONE, DENIED, BadInput):
        return None
    if cgroups is None:
        return None
    tables = ((level.path, level.table(fs, "cpu.stat")) for level in cgroups.levels)
    return {
        path: (table["nr_periods"], table.get("nr_throttled", 0)) for path, table in tables if "nr_periods" in table
    }


def throttled_percent(before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]) -> float:
    """The share of the quota's periods in which it ran out, of the cgroup where that was most; 0 without a quota."""
    shares = [0.0]
    for path, (periods, throttled) in after.items():
        earlier_periods, earlier_throttled = before.get(path, (0, 0))
        if path in before and periods > earlier_periods:
            shares.append(100 * (throttled - earlier_throttled) / (periods - earlier_periods))
    return max(shares)
