"""Time of each CPU since boot in clock ticks: the lines `cpuN` of /proc/stat (proc_stat(5)), and its context switches; lists of CPUs.

cpu0 10132153 290696 3084719 46828483 16683 0 25195 0 0 0: user nice system idle iowait irq softirq steal guest guest_nice
ctxt 567419337
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.quantities import integer, integers, number_list
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

_FEWEST, _COUNTED = 5, 8  # guest time is part of user time
_MOST_CPUS = 1 << 16


class CpuTime(NamedTuple):
    """One CPU, in ticks. Without CONFIG_IRQ_TIME_ACCOUNTING the kernel counts the kind of work that each clock tick finds running."""

    user: int
    nice: int
    system: int
    idle: int
    iowait: int
    irq: int = 0
    softirq: int = 0
    steal: int = 0

    @property
    def idle_ticks(self) -> int:
        """With nothing to run."""
        return self.idle + self.iowait

    @property
    def total_ticks(self) -> int:
        """All."""
        return sum(self)

    def since(self, before: CpuTime) -> CpuTime:
        """What has been added; a counter that ran backwards, as idle time may, has added nothing."""
        return CpuTime(*(max(0, now - then) for now, then in zip(self, before)))


def parse_cpu_times(text: str) -> dict[int, CpuTime]:
    """The times by the CPU's number; CPUs that are offline have no line."""
    found = {}
    for line in text.splitlines():
        name, *words = line.split(None, _COUNTED + 1) or [""]
        number = integer(name[3:]) if name.startswith("cpu") else None
        ticks = integers(words[:_COUNTED])
        if number is not None and ticks is not None and len(ticks) >= _FEWEST:
            found[number] = CpuTime(*ticks)
    return found


def parse_switches(text: str) -> int | None:
    """Context switches of all CPUs since boot, of /proc/stat; None where it has no such line."""
    words = next((line.split(None, 2) for line in text.splitlines() if line.startswith("ctxt ")), [])
    return integer(words[1]) if len(words) > 1 else None


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
