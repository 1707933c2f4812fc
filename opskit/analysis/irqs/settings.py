"""Notes about where interrupts go: isolated CPUs, NUMA nodes, irqbalance. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Entity, Finding
from opskit.quantities import agreeing, listed, number_ranges, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.collect.irqs.facts import Facts

_DISTURBS, _FAR = 10.0, 1000.0  # interrupts a second
_PART = 0.1  # of an interrupt: fewer came there before it was moved
_MOST_NAMED = 3


def setting_findings(facts: Facts) -> Iterator[Finding]:
    """The notes, each at most once."""
    yield from _on_isolated(facts)
    yield from _far(facts)
    yield from _balancer(facts)


def _on_isolated(facts: Facts) -> Iterator[Finding]:
    """Devices' interrupts, or packets by RPS, on CPUs that are kept free for something else."""
    special = facts.isolated | facts.tickless
    rates: dict[int, float] = {}
    sources: dict[str, float] = {}
    for interrupt in facts.interrupts:
        for cpu in special.intersection(interrupt.by_cpu) if interrupt.is_of_device else ():
            rates[cpu] = rates.get(cpu, 0.0) + interrupt.by_cpu[cpu]
            sources[interrupt.label] = sources.get(interrupt.label, 0.0) + interrupt.by_cpu[cpu]
    steered = {cpu.use.cpu: cpu.steered for cpu in facts.cpus if cpu.use.cpu in special and cpu.steered}
    disturbed = [cpu for cpu in special if rates.get(cpu, 0.0) + steered.get(cpu, 0.0) >= _DISTURBS]
    if not disturbed:
        return
    names = [f"{label} {whole(rate)}/s" for label, rate in sorted(sources.items(), key=lambda item: -item[1])]
    if steered:
        names.append(f"RPS {whole(sum(steered.values()))}/s")
    what = "interrupts of devices" if sources else "packets"
    which = "nohz_full" if not facts.isolated.intersection(disturbed) else "isolated"
    yield Finding(
        "irq-on-isolated-cpu", "note", HOST,
        f"{which} {agreeing(len(disturbed), 'CPU')} {number_ranges(disturbed)} "
        f"{agreeing(len(disturbed), 'gets', 'get')} {what}: {listed(names, _MOST_NAMED)}",
        f"/proc/interrupts over {facts.window_s:.1f} s; isolated: {number_ranges(facts.isolated) or 'none'}, nohz_full: "
        f"{number_ranges(facts.tickless) or 'none'}", next=shell.command("opskit", "irqs", "-v"), window_s=round(facts.window_s, 3),
    )  # fmt: skip


def _far(facts: Facts) -> Iterator[Finding]:
    """Network interfaces whose interrupts are handled on another NUMA node than theirs."""
    nodes = {cpu.use.cpu: cpu.node for cpu in facts.cpus}
    far = []
    for each in facts.interrupts:
        home = {interface.name: interface.node for interface in facts.interfaces}.get(each.interface or "", each.node)
        used = {nodes.get(cpu) for cpu, rate in each.by_cpu.items() if rate >= _PART * each.rate}
        if each.interface and home is not None and each.rate >= _FAR and None not in used and home not in used:
            far.append((each, home, used))
    if not far:
        return
    interrupt, home, used = far[0]
    more = f", and {len(far) - 1} more" if len(far) > 1 else ""
    yield Finding(
        "irq-far-node", "note", HOST,
        f"{interrupt.label} of {interrupt.interface} is handled on NUMA node {number_ranges(n for n in used if n is not None)}, the device is on "
        f"node {home}{more}", f"/proc/interrupts: {whole(interrupt.rate)}/s; numa_node {home}",
        next=shell.command("opskit", "irqs", "-v"), window_s=round(facts.window_s, 3),
    )  # fmt: skip


def _balancer(facts: Facts) -> Iterator[Finding]:
    """An irqbalance that is told its CPUs does not look at isolcpus and nohz_full."""
    balancer, special = facts.balancer, facts.isolated | facts.tickless
    if balancer is None or not balancer.ignores_isolation or balancer.banned is None or special <= balancer.banned:
        return
    lacking = special - balancer.banned
    yield Finding(
        "irqbalance-ignores-isolated", "note", Entity("process", balancer.pid),
        f"irqbalance ({balancer.pid}) may move interrupts to isolated or nohz_full {agreeing(len(lacking), 'CPU')} "
        f"{number_ranges(lacking)}: IRQBALANCE_BANNED_CPUS or IRQBALANCE_BANNED_CPULIST replaces its own detection",
        f"/proc/{balancer.pid}/environ bans {number_ranges(balancer.banned) or 'none'}; isolated: {number_ranges(facts.isolated) or 'none'}, "
        f"nohz_full: {number_ranges(facts.tickless) or 'none'}", next=shell.command("opskit", "irqs", "-v"),
    )  # fmt: skip
