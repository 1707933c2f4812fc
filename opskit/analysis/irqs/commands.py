"""What to type where interrupts take a CPU: move a thread, an interrupt, or the packets that RPS steers. Pure.

Interrupts and RPS go only to CPUs that the scheduler uses: not to isolated ones, nor those of nohz_full. They stay on the NUMA node of their
device where that has a CPU left. A thread stays within its cpuset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.irqs.causes import RPS, given
from opskit.analysis.irqs.result import Command
from opskit.proc.cpu_masks import cpu_mask
from opskit.quantities import number_ranges, percent
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from opskit.analysis.irqs.causes import Cause
    from opskit.analysis.irqs.result import Row
    from opskit.collect.irqs.facts import Facts, Interface, Interrupt, Pinned

_BUSY_THREAD, _LITTLE_IDLE = 0.5, 0.2
_MOST_THREADS, _MOST_SOURCES = 5, 2
_AND, _PIPE, _TO = shell.Syntax("&&"), shell.Syntax("|"), shell.Syntax(">")
_EACH_QUEUE = shell.Syntax("rx-*/rps_cpus")
_SYS_NET = "/sys/class/net"


class Trouble(NamedTuple):
    """A CPU that loses time to interrupts, why, and the threads that are pinned to it."""

    row: Row
    cause: Cause | None
    victims: tuple[Pinned, ...] = ()


class Machine:
    """Which CPUs can take what."""

    def __init__(self, facts: Facts, troubles: Sequence[Trouble]) -> None:
        self.facts = facts
        self.rows = {each.row.cpu.use.cpu: each.row for each in troubles}
        self._given = {each.row.cpu.use.cpu: given(each.row.load, each.cause) for each in troubles}
        self._moving = {victim.tid for trouble in troubles for victim in trouble.victims}

    def calm(self, row: Row) -> frozenset[int]:
        """The CPUs that get at most half of the interrupts of this one."""
        return frozenset(cpu for cpu, load in self._given.items() if load <= row.load / 2)

    def for_interrupts(self, row: Row, node: int | None) -> list[int]:
        """The CPUs that interrupts of this one could go to, the idlest first: rather none that a busy thread is pinned to."""
        usable = self.calm(row) - self.facts.isolated - self.facts.tickless
        return self._idlest(self._near(self._free(usable), node))

    def with_time(self, cpus: Sequence[int]) -> list[int]:
        """Those that have time left; all of them where none has."""
        return [cpu for cpu in cpus if self.rows[cpu].cpu.use.idle >= _LITTLE_IDLE] or [*cpus]

    def for_thread(self, row: Row, thread: Pinned) -> list[int]:
        """The CPUs that a pinned thread could go to, the idlest first: isolated ones for a thread that has one, no others."""
        special = self.facts.isolated | self.facts.tickless
        alike = special if thread.allowed <= special else frozenset(self.rows) - special
        usable = self.calm(row) & thread.cpuset & alike
        return self._idlest(self._near(self._free(usable), row.cpu.node))

    def _free(self, cpus: frozenset[int]) -> frozenset[int]:
        """Those that no busy thread is pinned to; all of them where there is no other."""
        busy = (each for each in self.facts.pinned if each.running >= _BUSY_THREAD and each.tid not in self._moving)
        return cpus - {cpu for each in busy for cpu in each.allowed} or cpus

    def _near(self, cpus: frozenset[int], node: int | None) -> frozenset[int]:
        """Those of a NUMA node; all of them where it has none of them."""
        return frozenset(cpu for cpu in cpus if self.rows[cpu].cpu.node == node) or cpus

    def _idlest(self, cpus: frozenset[int]) -> list[int]:
        return sorted(cpus, key=lambda cpu: (-round(self.rows[cpu].cpu.use.idle, 1), cpu))

    def busy_warning(self, cpus: Collection[int]) -> str | None:
        """A sentence where the CPUs have little time left."""
        idle = max((self.rows[cpu].cpu.use.idle for cpu in cpus), default=1.0)
        if idle >= _LITTLE_IDLE:
            return None
        if len(cpus) > 1:
            return f"CPUs {number_ranges(cpus)} are busy too: at most {percent(idle)} idle"
        return f"CPU {number_ranges(cpus)} is busy too: {percent(idle)} idle"


def for_threads(machine: Machine, trouble: Trouble) -> Iterator[Command]:
    """The commands that move the threads of a CPU away."""
    for victim in trouble.victims[:_MOST_THREADS]:
        yield from _move_thread(machine, trouble.row, victim)


def for_sources(machine: Machine, trouble: Trouble) -> Iterator[Command]:
    """The commands that move what comes to a CPU: interrupts, and packets by RPS."""
    cause = trouble.cause
    if cause is None:
        return
    for interrupt in cause.interrupts[:_MOST_SOURCES]:
        yield from _move_interrupt(machine, trouble.row, interrupt)
    for interface in cause.interfaces[:_MOST_SOURCES]:
        yield from _steer(machine, trouble, interface, is_new=cause.origin != RPS)


def _move_thread(machine: Machine, row: Row, victim: Pinned) -> Iterator[Command]:
    cpus = machine.for_thread(row, victim)
    if not cpus:
        return
    chosen = sorted(cpus[: max(len(victim.allowed), 1)])
    line = shell.command("taskset", "-cp", number_ranges(chosen), victim.tid)
    plural = "CPUs" if len(chosen) > 1 else "CPU"
    yield Command(
        line,
        f"move {victim.name} to {plural} {number_ranges(chosen)}, with fewer interrupts",
        machine.busy_warning(chosen),
    )


def _move_interrupt(machine: Machine, row: Row, interrupt: Interrupt) -> Iterator[Command]:
    """To one CPU, since most controllers deliver an interrupt to one. The kernel refuses it for a managed one."""
    cpus = machine.for_interrupts(row, interrupt.node)
    if not cpus or interrupt.managed or interrupt.number is None:
        return
    line = shell.command("echo", cpus[0], _TO, f"/proc/irq/{interrupt.number}/smp_affinity_list")
    warnings = [
        machine.busy_warning(cpus[:1]),
        _reverts(machine.facts, interrupt.number),
        "where the kernel manages this interrupt, the write fails (Input/output error)"
        if interrupt.managed is None
        else None,
    ]
    said = "; ".join(filter(None, warnings))
    yield Command(line, f"move {interrupt.label} to CPU {cpus[0]}", said or None)


def _reverts(facts: Facts, number: int) -> str | None:
    balancer = facts.balancer
    if balancer is None or balancer.one_shot or number in balancer.banned_irqs:
        return None
    option = shell.command(f"--banirq={number}")
    return (
        f"irqbalance ({balancer.pid}) moves it again within 10 s, unless it is started with {option} (IRQBALANCE_ARGS)"
    )


def _steer(machine: Machine, trouble: Trouble, interface: Interface, *, is_new: bool) -> Iterator[Command]:
    """RPS of the queues that give packets to this CPU. One interrupt cannot be divided: RPS spreads the work behind it."""
    cpu = trouble.row.cpu.use.cpu
    received = [queue for queue in interface.queues if queue.kind == "rx"]
    queues = received if is_new else [queue for queue in received if cpu in queue.cpus]
    if not queues or (is_new and (len(received) > 1 or received[0].cpus)):  # of several, the right one is unknown
        return
    cpus = machine.with_time(machine.for_interrupts(trouble.row, interface.node))
    if not cpus:
        return
    mask = cpu_mask(cpus)
    if len(queues) == 1:
        line = shell.command("echo", mask, _TO, f"{_SYS_NET}/{interface.name}/queues/rx-{queues[0].number}/rps_cpus")
    else:
        queue_directory = f"{_SYS_NET}/{interface.name}/queues"
        line = shell.command("cd", queue_directory, _AND, "echo", mask, _PIPE, "tee", _EACH_QUEUE)
    plural = "CPUs" if len(cpus) > 1 else "CPU"
    why = f"steer packets of {interface.name} to {plural} {number_ranges(cpus)}"
    yield Command(_inside(interface, line), why, machine.busy_warning(cpus))


def _inside(interface: Interface, line: str) -> str:
    """The command in the network namespace of the interface: /sys shows only that in which it was mounted."""
    space = interface.space
    if space is None:
        return line
    if space.name is not None:
        return shell.command("ip", "netns", "exec", space.name, "sh", "-c", line)
    mounted = f"{shell.command('mount', '-t', 'sysfs', 'sysfs', '/sys')} && {line}"
    return shell.command("nsenter", f"--net=/proc/{space.pid}/ns/net", "unshare", "--mount", "sh", "-c", mounted)
