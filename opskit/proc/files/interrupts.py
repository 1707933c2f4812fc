"""Interrupts since boot by CPU: /proc/interrupts (kernel/irq/proc.c, arch/*/kernel/irq.c). Only CPUs that are online have a column.

           CPU0       CPU2
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 85:   30482124         19  PCI-MSI 1048576-edge      eth0-rx-0, eth0-tx-0
LOC:   30121272   30113403   Local timer interrupts
ERR:          0

arm64 has numbers for its own ones too, and the trigger in a word of its own:

 11:    2066214    1932321     GICv3  27 Level     arch_timer
IPI0:     23412      30011       Rescheduling interrupts
"""

from __future__ import annotations

import re

from opskit.proc.counters import added_32
from opskit.proc.cpu_columns import split_columns
from opskit.quantities import integer, integers
from opskit.records import NamedTuple

# A line without a driver's name ends with the chip's trigger.
_TRIGGER = re.compile(r"(?:[0-9]+-|.{1,40}-)?(?:edge|level|fasteoi|event|Edge|Level|MSI)?")


class Interrupts(NamedTuple):
    """One reading. `cpus`: of the columns. `lines`: what follows each name, not parsed yet: 192 CPUs may have 2 MB of it."""

    cpus: tuple[int, ...]
    lines: dict[str, str]

    def counts(self, name: str) -> list[int] | None:
        """The numbers of a line by column; None for one that has fewer, as ERR and MIS, or that is gone."""
        words = self.lines.get(name, "").split(None, len(self.cpus))[: len(self.cpus)]
        return integers(words) if len(words) == len(self.cpus) else None

    def text(self, name: str) -> str:
        """What follows the numbers of a line: the chip and the devices, or what it is."""
        words = self.lines.get(name, "").split(None, len(self.cpus))
        return words[len(self.cpus)] if len(words) > len(self.cpus) else ""

    def devices(self, name: str) -> str:
        """The drivers' names of a numbered line, `eth0-rx-0, eth0-tx-0`: two blanks are before them. Empty: none."""
        _, _, last = self.text(name).rpartition("  ")
        last = last.strip()
        return "" if _TRIGGER.fullmatch(last) else last

    def since(self, before: Interrupts) -> dict[str, dict[int, int]]:
        """By how much the lines that moved have grown on each CPU that both readings have, where they have."""
        grown, known = {}, frozenset(before.cpus)
        for name, line in self.lines.items():
            if line == before.lines.get(name):
                continue
            now = self.counts(name)
            if now is None:
                continue
            then = dict(zip(before.cpus, before.counts(name) or ())) if name in before.lines else {}
            added = {cpu: added_32(count, then.get(cpu, 0)) for cpu, count in zip(self.cpus, now) if cpu in known}
            if any(added.values()):
                grown[name] = {cpu: number for cpu, number in added.items() if number}
        return grown


def parse_interrupts(text: str) -> Interrupts:
    """Split the lines. Raises BadInput for another heading than `CPU0 CPU1 …`."""
    return Interrupts(*split_columns("interrupts", text))


def number_of(name: str) -> int | None:
    """The number of a device's interrupt; None for the architecture's own (LOC, RES, IPI0)."""
    return integer(name)
