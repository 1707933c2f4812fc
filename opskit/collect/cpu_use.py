"""What each CPU did between two readings of /proc/stat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.proc.files.cpu_times import CpuTime


class CpuUse(NamedTuple):
    """One CPU: shares of the time, 0 to 1. `user` holds nice and guests, `idle` also waits for disks.

    `irq` and `softirq` are sampled by the clock tick where the kernel lacks CONFIG_IRQ_TIME_ACCOUNTING.
    """

    cpu: int
    user: float
    system: float
    irq: float
    softirq: float
    steal: float
    idle: float


def cpu_use(before: Mapping[int, CpuTime], after: Mapping[int, CpuTime]) -> tuple[CpuUse, ...]:
    """The CPUs that both readings have, by number; one for which no tick was counted is left out."""
    passed = {number: now.since(before[number]) for number, now in after.items() if number in before}
    return tuple(_shares(number, ticks) for number, ticks in sorted(passed.items()) if ticks.total_ticks)


def _shares(number: int, ticks: CpuTime) -> CpuUse:
    total = ticks.total_ticks
    return CpuUse(
        number, (ticks.user + ticks.nice) / total, ticks.system / total, ticks.irq / total, ticks.softirq / total,
        ticks.steal / total, ticks.idle_ticks / total,
    )  # fmt: skip
