"""Judge utilisation and saturation of the CPUs. Pure.

That more tasks want to run than there are CPUs is a note here: analysis/cswitch/quick.py knows who waits, and whether that is harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.cswitch.causes import CROWDED, FULL, STOLEN, mean
from opskit.analysis.finding import HOST, Finding
from opskit.quantities import agreeing, number_ranges, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.collect.host.cpu import Facts

_STOLEN_OF_ONE = 0.3  # of one CPU, where the others have no work
# The load average counts tasks that run, wait for a CPU or sleep in state D. Where few waited for a CPU, the rest slept.
_FEW_WAITED, _TIMES, _MORE = 0.1, 1.5, 2.0


def judge(facts: Facts) -> tuple[Finding, ...]:
    """The findings about the machine."""
    return (*_stolen(facts), *_crowd(facts), *_load(facts), *_offline(facts))


def _stolen(facts: Facts) -> Iterator[Finding]:
    share = mean(use.steal for use in facts.cpus)
    worst = max(facts.cpus, key=lambda use: use.steal, default=None)
    if worst is None or (share < STOLEN and worst.steal < _STOLEN_OF_ONE):
        return
    said = f"{percent(share)} of the time of {plural(len(facts.cpus), 'CPU')} while they have work"
    if share < STOLEN:
        said, share = f"{percent(worst.steal)} of the time of CPU {worst.cpu} while it has work", worst.steal
    yield Finding(
        "cpu-stolen", "warning", HOST, f"the hypervisor takes {said}",
        f"/proc/stat: steal of {plural(len(facts.cpus), 'CPU')}; {percent(mean(use.idle for use in facts.cpus))} idle",
        fix="ask who runs the host; a larger instance, or one without CPU credits", next=shell.command("vmstat", 1),
        share=round(share, 4), window_s=round(facts.window_s, 3),
    )  # fmt: skip


def _crowd(facts: Facts) -> Iterator[Finding]:
    pressure = 1.0 if facts.pressure is None else facts.pressure
    if facts.runnable is None or facts.runnable <= len(facts.cpus) or pressure < CROWDED:
        return
    if mean(use.idle for use in facts.cpus) > FULL:
        return
    yield Finding(
        "runnable-above-cpus", "note", HOST,
        f"{facts.runnable:.1f} tasks want to run on {plural(len(facts.cpus), 'CPU')}", "/proc/loadavg",
        next=shell.command("opskit", "cswitch"), share=facts.pressure, window_s=round(facts.window_s, 3),
    )  # fmt: skip


def _load(facts: Facts) -> Iterator[Finding]:
    load, averages, cpus = facts.load, facts.averages, facts.online
    if load is None or averages is None or not cpus or averages.of_60_s >= _FEW_WAITED:
        return
    if load.load1 < max(_TIMES * cpus, cpus + _MORE):
        return
    yield Finding(
        "load-not-cpu", "note", HOST,
        f"the load average of {load.load1:.1f} on {plural(cpus, 'CPU')} is not for CPUs: tasks sleep uninterruptibly (state D)",
        f"/proc/loadavg; PSI: some task waited for a CPU {percent(averages.of_60_s)} of the last minute",
        next=shell.command("opskit", "io"),
    )  # fmt: skip


def _offline(facts: Facts) -> Iterator[Finding]:
    if not facts.offline:
        return
    number = len(facts.offline)
    yield Finding(
        "cpu-offline", "note", HOST,
        f"{plural(number, 'CPU')} of {number + facts.online} {agreeing(number, 'is', 'are')} offline: {number_ranges(facts.offline)}",
        "/sys/devices/system/cpu/present and online", fix=shell.command("chcpu", "-e", number_ranges(facts.offline)),
    )  # fmt: skip
