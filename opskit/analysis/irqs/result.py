"""What `opskit irqs` concludes. None: unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.analysis.finding import Finding
    from opskit.collect.irqs.facts import Cpu, Facts, Interrupt, Pinned


class Row(NamedTuple):
    """A CPU: `load` of interrupts and softirqs, 0 to 1; `cause`: what most of them are (`RPS of eth0`, `irq 24 virtio1-input.0`, …)."""

    cpu: Cpu
    load: float
    cause: str | None = None
    is_saturated: bool = False


class Command(NamedTuple):
    """A command line of opskit.shell that would help, and why. `warning`: what would undo it or what it costs."""

    line: str
    why: str
    warning: str | None = None


class Result(NamedTuple):
    """`verdict`: sentences, the first is the answer. `rows`: all CPUs by number. `top`: interrupts by rate. `victims`: pinned to a saturated CPU."""

    facts: Facts
    verdict: tuple[str, ...]
    rows: tuple[Row, ...]
    top: tuple[Interrupt, ...]
    victims: tuple[Pinned, ...]
    commands: tuple[Command, ...]
    findings: tuple[Finding, ...]
