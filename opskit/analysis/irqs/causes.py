"""What the interrupts and softirqs of a CPU are for: packets that RPS steers to it, those of its interfaces' interrupts, or its own threads'. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.quantities import listed, whole
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opskit.collect.irqs.facts import Cpu, Facts, Interface, Interrupt

NETWORK, BLOCK, TIMERS, TASKLETS, SCHEDULING = (
    "network softirqs",
    "block device softirqs",
    "timer softirqs",
    "tasklets",
    "softirqs",
)
HARD = "interrupts"
_KINDS = {
    NETWORK: ("NET_RX", "NET_TX"), BLOCK: ("BLOCK", "IRQ_POLL"), TIMERS: ("TIMER", "HRTIMER"), TASKLETS: ("TASKLET", "HI"),
    SCHEDULING: ("SCHED", "RCU"),
}  # fmt: skip
RPS, IRQ, OWN, UNKNOWN = "rps", "irq", "own", "unknown"
# Of the NET_RX of a CPU: those that another CPU raised. A CPU that has packets left raises the next one itself.
_MOSTLY_STEERED, _ALL_STEERED = 0.5, 0.8
_LEAST_STEERED = 20.0  # a second
_OTHERS, _PART, _MOST_NAMED = 0.05, 0.2, 2


class Cause(NamedTuple):
    """`noun`: what takes the time. `origin`: rps, irq (a device's interrupts), own (threads of this CPU), unknown.

    `interfaces` and `interrupts` that it comes from, the busiest first. `detail`: rates and names for a sentence, `label`: for a column.
    """

    noun: str
    origin: str
    detail: str
    label: str
    interfaces: tuple[Interface, ...] = ()
    interrupts: tuple[Interrupt, ...] = ()

    @property
    def is_foreign(self) -> bool:
        """Whether it would stay here if the threads of this CPU moved away."""
        return self.origin in (RPS, IRQ)


def given(load: float, cause: Cause | None) -> float:
    """The part of a CPU's load that others give it: softirqs of its own threads are those threads' work."""
    return 0.0 if cause is not None and cause.origin == OWN else load


def cause_of(facts: Facts, cpu: Cpu) -> Cause | None:
    """The largest part of a CPU's interrupts and softirqs; None: there are none."""
    rates = {noun: sum(cpu.softirqs.get(kind, 0.0) for kind in kinds) for noun, kinds in _KINDS.items()}
    rates[NETWORK] = max(rates[NETWORK], cpu.processed or 0.0 if cpu.softirqs.get("NET_RX") else 0.0)
    noun = max(rates, key=lambda each: rates[each])
    if cpu.use.irq > cpu.use.softirq:
        return _hard(facts, cpu)
    if noun == NETWORK and rates[NETWORK]:
        return _network(facts, cpu)
    interrupts = _interrupts_on(facts, cpu, lambda interrupt: interrupt.interface is None)
    if noun == BLOCK and interrupts:
        return _of_devices(BLOCK, cpu, f"{whole(rates[BLOCK])} BLOCK/s, ", interrupts)
    if rates[noun]:
        kinds = max(_KINDS[noun], key=lambda kind: cpu.softirqs.get(kind, 0.0))
        said = f"{whole(cpu.softirqs.get(kinds, 0.0))} {kinds}/s"
        return Cause(noun, UNKNOWN, said, said)
    return _hard(facts, cpu) if cpu.interrupts else None


def _hard(facts: Facts, cpu: Cpu) -> Cause | None:
    """Interrupts themselves, not what they leave to softirqs."""
    interrupts = _interrupts_on(facts, cpu, lambda _: True)
    if not interrupts:
        said = f"{whole(cpu.ipis)} IPIs/s, {whole(cpu.local_timer)} timer interrupts/s"
        return Cause(HARD, UNKNOWN, said, said) if cpu.use.irq else None
    return _of_devices(HARD, cpu, "", interrupts)


def _of_devices(noun: str, cpu: Cpu, before: str, interrupts: tuple[Interrupt, ...]) -> Cause:
    names = [f"{each.label} {whole(each.by_cpu.get(cpu.use.cpu))}/s" for each in interrupts]
    return Cause(noun, IRQ, before + listed(names, _MOST_NAMED), interrupts[0].label, interrupts=interrupts)


def _interrupts_on(facts: Facts, cpu: Cpu, is_wanted: Callable[[Interrupt], bool]) -> tuple[Interrupt, ...]:
    """Those of devices that this CPU gets, the most frequent first, without those that hardly count."""
    number = cpu.use.cpu
    found = [each for each in facts.interrupts if each.is_of_device and each.by_cpu.get(number) and is_wanted(each)]
    found.sort(key=lambda each: -each.by_cpu[number])
    return tuple(each for each in found if each.by_cpu[number] >= _PART * found[0].by_cpu[number])


def _network(facts: Facts, cpu: Cpu) -> Cause:
    """Packets: who gives them to this CPU."""
    received = cpu.softirqs.get("NET_RX", 0.0)
    packets = cpu.processed or received
    said = f"{whole(received)} NET_RX/s"
    of_interfaces = _interrupts_on(facts, cpu, lambda interrupt: interrupt.interface is not None)
    by_irq = sum(each.by_cpu[cpu.use.cpu] for each in of_interfaces)
    steering = _busiest(each for each in facts.interfaces if _steers_to(each, cpu.use.cpu))
    steered = cpu.steered or 0.0
    is_alone = by_irq <= _OTHERS * received
    if steered >= _LEAST_STEERED and (steered >= _MOSTLY_STEERED * received or (steering and is_alone)):
        unsteered = sum(each.packets for each in facts.interfaces if each not in steering)
        is_all = is_alone and (steered >= _ALL_STEERED * received or unsteered <= _OTHERS * packets)
        names = f" of {listed([each.name for each in steering], _MOST_NAMED)}" if steering else ""
        return Cause(
            NETWORK, RPS, f"{said}, {'all' if is_all else 'mostly'} steered by RPS{names}", f"RPS{names}", steering
        )
    devices = _busiest(each for each in facts.interfaces if not each.is_virtual and each.packets >= _PART * packets)
    named = {each.interface for each in of_interfaces}
    if of_interfaces and (by_irq >= _LEAST_STEERED or named.intersection(each.name for each in devices)):
        sources = tuple(each for each in facts.interfaces if each.name in named and each.space is None)
        return _of_devices(NETWORK, cpu, f"{said}, ", of_interfaces)._replace(interfaces=sources)
    if cpu.processed is not None and cpu.processed <= _OTHERS * received and not devices:
        return Cause(
            NETWORK, OWN, f"{said}, to give packets of its own threads to other CPUs", "own threads, to other CPUs"
        )
    virtual = _busiest(each for each in facts.interfaces if each.is_virtual and each.packets >= _PART * packets)
    if virtual and not devices:
        names = listed([each.name for each in virtual], _MOST_NAMED)
        return Cause(NETWORK, OWN, f"{said}, of its own threads over {names}", f"own threads over {names}", virtual)
    return Cause(NETWORK, UNKNOWN, said, said, devices)


def _busiest(interfaces: Iterable[Interface]) -> tuple[Interface, ...]:
    """The busiest first, without those that hardly receive anything beside them."""
    found = sorted(interfaces, key=lambda each: -each.packets)
    return tuple(each for each in found if each.packets >= _PART * found[0].packets)


def _steers_to(interface: Interface, cpu: int) -> bool:
    return any(queue.kind == "rx" and cpu in queue.cpus for queue in interface.queues)
