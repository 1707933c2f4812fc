"""Whether the machine, or a cgroup, is slowed down for lack of memory now. Pure.

Old pages in swap without activity are healthy, and so is a page cache that is reclaimed: what counts is that tasks wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Entity, Finding, most_severe_first
from opskit.analysis.mem.machine import available, supply
from opskit.analysis.thresholds import MEMORY_STALL_SHARE
from opskit.quantities import duration, percent, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.finding import Severity
    from opskit.collect.host.memory_pressure import Pressure, PressureFacts

_SOME, _FULL, _BAD = 0.20, 0.10, 0.40  # of the window: some task, or all, waited for memory
_SWAPS_S = 1 << 20  # bytes in, and bytes out
_SWAP_HURTS = 0.05  # of the window
_SWAP_LEFT = 0.1
_STALLS_S, _SCANNED_S = 10.0, 1000.0  # direct reclaim, where the kernel has no PSI
_OF_HOST = 0.5  # a cgroup with so much of the machine's pressure is where it comes from
_MEM = shell.command("opskit", "mem")


def is_pressed(pressure: Pressure) -> bool:
    """Whether tasks wait for memory: in the window, and not only then."""
    if pressure.some is None or pressure.averages is None:
        return False
    now = pressure.some >= _SOME or (pressure.full or 0.0) >= _FULL
    return now and max(pressure.averages.of_10_s, pressure.averages.of_60_s) >= MEMORY_STALL_SHARE


def judge_memory_pressure(facts: PressureFacts, *, of_processes: bool = False) -> list[Finding]:
    """The findings; `of_processes`: about their cgroups alone."""
    if of_processes:
        return [_pressed(facts, each, Entity("cgroup", each.path)) for each in facts.groups if is_pressed(each)]
    found = list(_activity(facts))
    return most_severe_first([*found, *_swap_space(facts)])


def looked_at(facts: PressureFacts) -> list[str]:
    """What was looked at, in words."""
    total = facts.meminfo.get("SwapTotal", 0)
    swap = f"{size(total - facts.meminfo.get('SwapFree', 0))} of {size(total)} swap used" if total else "no swap"
    some = facts.host.some if facts.host is not None else None
    return [swap, *([] if some is None else [f"some task waited for memory {percent(some)} of the time"])]


def _activity(facts: PressureFacts) -> Iterator[Finding]:
    machine = facts.host
    swaps_in, swaps_out = (facts.rates.get(name, 0.0) * facts.page_bytes for name in ("pswpin", "pswpout"))
    some = None if machine is None else machine.some
    swaps = min(swaps_in, swaps_out) >= _SWAPS_S and (some is None or some >= _SWAP_HURTS)
    pressed = machine is not None and is_pressed(machine)
    if swaps:
        waits = f"; some task waited for memory {percent(some)} of the time" if some is not None else ""
        severity: Severity = "error" if machine is not None and (machine.full or 0.0) >= _BAD else "warning"
        yield Finding(
            "swapping", severity, HOST,
            f"memory is swapped in and out at once: {size(swaps_in)}/s in, {size(swaps_out)}/s out{waits}",
            f"pswpin and pswpout of /proc/vmstat in {duration(facts.window_s)}{_reclaim_words(facts)}",
            next=_MEM, share=some, window_s=facts.window_s,
        )  # fmt: skip
    elif pressed and machine is not None:
        yield _pressed(facts, machine, _where(facts, machine))
    elif machine is None and _reclaims_without_psi(facts):
        yield Finding(
            "memory-pressure", "warning", HOST,
            f"tasks have to free memory before they get any: {facts.rates['allocstall']:,.0f} times a second",
            f"allocstall of /proc/vmstat in {duration(facts.window_s)}{_reclaim_words(facts)}", next=_MEM, window_s=facts.window_s,
        )  # fmt: skip


def _reclaims_without_psi(facts: PressureFacts) -> bool:
    rates = facts.rates
    much = rates.get("allocstall", 0.0) >= _STALLS_S and rates.get("pgscan_direct", 0.0) >= _SCANNED_S
    return much and _supply(facts) == "short"


def _supply(facts: PressureFacts) -> str:
    return supply(available(facts.meminfo), facts.meminfo.get("MemTotal", 0))


def _where(facts: PressureFacts, machine: Pressure) -> Entity:
    """The cgroup that the pressure comes from, where one is known; else the machine."""
    first = facts.groups[0] if facts.groups else None
    shares = [each.averages.of_10_s for each in (first, machine) if each is not None and each.averages is not None]
    if first is not None and len(shares) == 2 and shares[0] >= _OF_HOST * shares[1]:
        return Entity("cgroup", first.path)
    if len(facts.at_limit) == 1 and _supply(facts) != "short":
        return Entity("cgroup", facts.at_limit[0])
    return HOST


def _pressed(facts: PressureFacts, pressure: Pressure, entity: Entity) -> Finding:
    some, full, averages = pressure.some or 0.0, pressure.full or 0.0, pressure.averages
    where = f" in {entity.id}" if entity.kind == "cgroup" else ""
    lasting = f", {percent(averages.of_60_s)} of the last minute" if averages is not None else ""
    return Finding(
        "memory-pressure", "error" if full >= _BAD else "warning", entity,
        f"tasks{where} wait for memory: some {percent(some)} of the time, all at once {percent(full)}{lasting}",
        f"memory pressure (PSI) in {duration(facts.window_s)}{_reclaim_words(facts)}",
        next=_MEM, share=some, window_s=facts.window_s,
    )  # fmt: skip


def _reclaim_words(facts: PressureFacts) -> str:
    """What the kernel did meanwhile, as far as it did anything."""
    page, rates = facts.page_bytes, facts.rates
    refaults = sum(rate for name, rate in rates.items() if name.startswith("workingset_refault"))
    parts = {
        "swapped in": rates.get("pswpin", 0.0) * page,
        "swapped out": rates.get("pswpout", 0.0) * page,
        "scanned by tasks": rates.get("pgscan_direct", 0.0) * page,
        "scanned by kswapd": rates.get("pgscan_kswapd", 0.0) * page,
        "read again": refaults * page,
    }
    words = [f"{size(amount)}/s {what}" for what, amount in parts.items() if amount >= 1]
    faults = rates.get("pgmajfault", 0.0)
    words += [f"{faults:,.0f} major faults a second"] if faults >= 1 else []
    return f"; {', '.join(words)}" if words else ""


def _swap_space(facts: PressureFacts) -> Iterator[Finding]:
    total, free = facts.meminfo.get("SwapTotal", 0), facts.meminfo.get("SwapFree", 0)
    if not total or free >= _SWAP_LEFT * total:
        return
    is_short = _supply(facts) == "short"
    zram = f"; zram holds {size(facts.zram_bytes)} of memory" if facts.zram_bytes else ""
    yield Finding(
        "swap-nearly-full", "warning" if is_short else "note", HOST,
        f"swap is {percent(1 - free / total)} full, {size(free)} of {size(total)} is free"
        + (", and memory is short: the OOM killer comes next" if is_short else "; memory is not short"),
        f"/proc/meminfo: SwapTotal, SwapFree, MemAvailable{zram}",
        next=_MEM, share=1 - free / total,
    )  # fmt: skip
