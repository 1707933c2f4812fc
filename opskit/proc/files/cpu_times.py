"""Time of each CPU since boot in clock ticks: the lines `cpuN` of /proc/stat (proc_stat(5)); lists of CPUs.

cpu0 10132153 290696 3084719 46828483 16683 0 25195 0 0 0: user nice system idle iowait irq softirq steal guest guest_nice
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.quantities import integer, integers, number_list
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

_IDLE = (3, 4)
_COUNTED = 8  # guest time is part of user time
_MOST_CPUS = 1 << 16


class CpuTime(NamedTuple):
    """One CPU: ticks with nothing to run, and all."""

    idle_ticks: int
    total_ticks: int


def parse_cpu_times(text: str) -> dict[int, CpuTime]:
    """The times by the CPU's number; CPUs that are offline have no line."""
    found = {}
    for line in text.splitlines():
        name, *words = line.split(None, _COUNTED + 1)
        number = integer(name[3:]) if name.startswith("cpu") else None
        ticks = integers(words[:_COUNTED])
        if number is not None and ticks is not None and len(ticks) > max(_IDLE):
            found[number] = CpuTime(sum(ticks[at] for at in _IDLE), sum(ticks))
    return found


def parse_cpu_list(text: str) -> frozenset[int] | None:
    """`0-3,8` (Cpus_allowed_list of status); None for anything else."""
    return number_list(text, _MOST_CPUS)


def read_online_cpus(fs: ProcFS) -> list[int]:
    """The CPUs in /sys/devices/system/cpu/online, or those of /proc/stat. Raises NotSupported."""
    found = fs.maybe_root(parse_cpu_list, "sys", "devices", "system", "cpu", "online")
    cpus = sorted(found or fs.maybe(parse_cpu_times, "stat", default={}))
    if not cpus:
        raise NotSupported("the CPUs that are online are unknown: neither /sys nor /proc/stat shows them")
    return cpus
