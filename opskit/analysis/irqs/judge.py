"""Judge which CPUs lose their time to interrupts and softirqs, and who suffers from it. Pure.

Softirqs of a CPU's own threads (loopback, a virtual interface) are the threads' work: they move with them. Only what a device or RPS
gives to a CPU can be moved away from its threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Entity, Finding, is_failure, most_severe_first
from opskit.analysis.irqs.causes import HARD, NETWORK, OWN, cause_of, given
from opskit.analysis.irqs.commands import Machine, Trouble, for_sources, for_threads
from opskit.analysis.irqs.result import Result, Row
from opskit.analysis.irqs.settings import setting_findings
from opskit.quantities import agreeing, duration, percent, plural, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.finding import Severity
    from opskit.analysis.irqs.causes import Cause
    from opskit.analysis.irqs.result import Command
    from opskit.collect.irqs.facts import Cpu, Facts, Pinned

# Shares of a CPU's time.
_WORTH_A_VICTIM, _WORTH_A_NOTE = (
    0.15,
    0.3,
)  # interrupts beside a pinned thread that wants the whole CPU, or a part of it
_WANTS_IT_ALL, _WANTS_SOME = 0.5, 0.05
_NO_IDLE, _SATURATED, _SATURATED_WITH_DROPS = 0.1, 0.85, 0.5
_WORTH_NAMING = 0.02
_DROPPED_SHARE, _DROPPED = 0.01, 100.0  # of the packets; a second
_MOST_FINDINGS = 4
_TICKS_A_S, _LEAST_TICKS = 100, 5  # clock ticks in interrupts: fewer may be chance


def judge(facts: Facts) -> Result:
    """The CPUs that are saturated, the threads that are pinned to them, and what to type."""
    causes = {cpu.use.cpu: cause_of(facts, cpu) for cpu in facts.cpus}
    rows = [_row(cpu, causes) for cpu in facts.cpus]
    troubles = [_trouble(facts, row, rows, causes) for row in rows]
    machine = Machine(facts, troubles)
    found: list[Finding] = []
    commands = []
    saturated: set[int] = set()
    harmed: list[Pinned] = []
    for trouble in sorted(troubles, key=lambda each: -each.row.load):
        moves = [*for_threads(machine, trouble)] if _is_harmed(trouble) else []
        spreads = [*for_sources(machine, trouble)] if _is_harmed(trouble) else []
        lines = moves + spreads
        of_cpu = [*_pinned(facts, trouble, _first_line(lines))]
        if not is_failure(of_cpu):  # else it has been said
            of_cpu += _overloaded(facts, trouble, _first_line(spreads))
        of_cpu += _dropping(facts, trouble, _first_line(spreads))
        found += of_cpu
        if is_failure(of_cpu):
            saturated.add(trouble.row.cpu.use.cpu)
            harmed += trouble.victims
        if of_cpu:
            commands += lines
    findings = [*_first(found), *setting_findings(facts)]
    return Result(
        facts,
        tuple(_verdict(rows, causes, found)),
        tuple(row._replace(is_saturated=row.cpu.use.cpu in saturated) for row in rows),
        tuple(sorted(facts.interrupts, key=lambda each: -each.rate)),
        tuple(dict.fromkeys(harmed)),
        tuple(dict.fromkeys(commands)),
        tuple(most_severe_first(findings)),
    )


def _first_line(commands: Sequence[Command]) -> str | None:
    return commands[0].line if commands else None


def _row(cpu: Cpu, causes: Mapping[int, Cause | None]) -> Row:
    cause = causes[cpu.use.cpu]
    return Row(cpu, min(cpu.use.irq + cpu.use.softirq, 1.0), None if cause is None else cause.label)


def _trouble(facts: Facts, row: Row, rows: Sequence[Row], causes: Mapping[int, Cause | None]) -> Trouble:
    """The threads that have no CPU with fewer interrupts, the busiest first, where the machine has such a CPU."""
    number = row.cpu.use.cpu
    cause = causes[number]
    if row.load < _WORTH_A_VICTIM or cause is None or not cause.is_foreign or not _is_certain(facts, row):
        return Trouble(row, cause)
    calm = {each.cpu.use.cpu for each in rows if given(each.load, causes[each.cpu.use.cpu]) <= row.load / 2}
    victims = [
        each
        for each in facts.pinned
        if number in each.allowed
        and not each.allowed & calm
        and not each.is_idle_class
        and _wanted(each) >= _WANTS_SOME
    ]
    return Trouble(row, cause, tuple(sorted(victims, key=_wanted, reverse=True)) if calm else ())


def _is_certain(facts: Facts, row: Row) -> bool:
    """Whether the load is measured, or sampled often enough: a window of 20 ms has two ticks."""
    if facts.accounts_irqs is not False or row.cpu.is_measured:
        return True
    return row.load * facts.window_s * _TICKS_A_S >= _LEAST_TICKS


def _wanted(thread: Pinned) -> float:
    """How much of a CPU a thread wants: what it gets, and what it waits for."""
    return thread.running + (thread.lost or 0.0)


def _is_harmed(trouble: Trouble) -> bool:
    return bool(trouble.victims) or trouble.row.load >= _SATURATED_WITH_DROPS or bool(trouble.row.cpu.drops)


def _spends(row: Row, cause: Cause | None) -> str:
    """`CPU 0 spends 39 % on network softirqs (13,271 NET_RX/s, all steered by RPS of veth)`."""
    use = row.cpu.use
    noun, detail = ("softirqs", "") if cause is None else (cause.noun, f" ({cause.detail})")
    if noun != HARD and use.irq >= _WORTH_NAMING:
        return f"CPU {use.cpu} spends {percent(row.load)} on interrupts and {noun}{detail}"
    return f"CPU {use.cpu} spends {percent(use.irq if noun == HARD else use.softirq)} on {noun}{detail}"


def _pinned(facts: Facts, trouble: Trouble, fix: str | None) -> Iterator[Finding]:
    """A warning where a thread wants the whole CPU, and the CPU has no time left."""
    row, victims = trouble.row, trouble.victims
    starved = [each for each in victims if _wanted(each) >= _WANTS_IT_ALL]
    severity: Severity = "warning" if starved and row.cpu.use.idle <= _NO_IDLE else "note"
    if not victims or (severity == "note" and row.load < _WORTH_A_NOTE):
        return
    named = starved or list(victims)
    first = named[0]
    entity = Entity("process", first.process.pid, first.process.start_ticks)
    if first.tid != first.process.pid:
        entity = Entity("thread", first.tid, inside=entity)
    yield Finding(
        "irq-pinned-thread", severity, entity,
        f"{_spends(row, trouble.cause)}; {_who(named)}",
        f"{_times(row.cpu)}; schedstat of {first.tid}: {percent(first.running)} running, softirqs included, {percent(first.lost)} waiting",
        fix=fix, next=shell.command("opskit", "cswitch", first.process.pid), share=round(row.load, 4),
        window_s=round(facts.window_s, 3),
    )  # fmt: skip


def _who(threads: Sequence[Pinned]) -> str:
    """`7525 (spin) is pinned to it`; `worker-1 (7530) of java (7525) and 2 more threads are pinned to it`."""
    first, *others = threads
    process = first.process
    name = f"{process.pid} ({process.command})"
    if first.tid != process.pid:
        name = f"thread {first.tid} ({first.name}) of {name}"
    is_confined = bool(first.cpuset) and first.allowed >= first.cpuset
    how = "confined to it by its cpuset" if is_confined else "pinned to it"
    if others:
        return f"{name} and {plural(len(others), 'more thread')} are {how if not is_confined else 'pinned to it'}"
    return f"{name} is {how}"


def _overloaded(facts: Facts, trouble: Trouble, fix: str | None) -> Iterator[Finding]:
    """A CPU that has time for nothing but what others give it."""
    row, cause = trouble.row, trouble.cause
    enough = _SATURATED_WITH_DROPS if _drops_too_many(row.cpu) else _SATURATED
    if row.load < enough or row.cpu.use.idle > _NO_IDLE or cause is None or cause.origin == OWN:
        return
    if not _is_certain(facts, row):
        return
    rest = [cpu.use.idle for cpu in facts.cpus if cpu.use.cpu != row.cpu.use.cpu]
    others = (
        f"; the other {agreeing(len(rest), 'CPU is', f'{len(rest)} CPUs are')} {percent(sum(rest) / len(rest))} idle"
        if rest
        else ""
    )
    yield Finding(
        "irq-cpu-saturated", "warning", HOST, f"{_spends(row, cause)}, and has no time left{others}",
        f"{_times(row.cpu)}; softnet_stat: {whole(row.cpu.drops)} drops/s, {whole(row.cpu.squeezes)} squeezes/s",
        fix=fix, next=shell.command("opskit", "irqs", "-w"), share=round(row.load, 4), window_s=round(facts.window_s, 3),
    )  # fmt: skip


def _times(cpu: Cpu) -> str:
    """Where the share comes from."""
    use = cpu.use
    said = (
        f"/proc/stat of CPU {use.cpu}: irq {percent(use.irq)}, softirq {percent(use.softirq)}, idle {percent(use.idle)}"
    )
    if not cpu.is_measured:
        return said
    return f"a thread that spun on CPU {use.cpu} for moments lost {percent(use.softirq)} of its time to interrupts"


def _drops_too_many(cpu: Cpu) -> bool:
    drops = cpu.drops or 0.0
    return drops >= _DROPPED and drops >= _DROPPED_SHARE * (drops + (cpu.processed or 0.0))


def _dropping(facts: Facts, trouble: Trouble, fix: str | None) -> Iterator[Finding]:
    """Packets lost since the backlog of a CPU was full."""
    cpu = trouble.row.cpu
    if not cpu.drops:
        return
    backlog = "" if facts.max_backlog is None else f" ({facts.max_backlog:,} packets)"
    if cpu.use.idle > _NO_IDLE and facts.max_backlog:  # bursts: the CPU has time for them later
        fix = shell.command("sysctl", "-w", f"net.core.netdev_max_backlog={2 * facts.max_backlog}")
    yield Finding(
        "irq-backlog-drops", "warning" if _drops_too_many(cpu) else "note", HOST,
        f"CPU {cpu.use.cpu} drops {_dropped(cpu.drops, facts.window_s)}: its backlog{backlog} is full",
        f"softnet_stat: {whole(cpu.drops)} dropped/s, {whole(cpu.processed)} processed/s", fix=fix,
        next=shell.command("opskit", "irqs", "-w"), window_s=round(facts.window_s, 3),
    )  # fmt: skip


def _dropped(rate: float, window_s: float) -> str:
    """`812 packets/s`; `1 packet in 2.0 s` of less than one a second."""
    return (
        f"{whole(rate)} packets/s"
        if rate >= 1
        else f"{plural(max(round(rate * window_s), 1), 'packet')} in {duration(window_s)}"
    )


def _first(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The worst ones of each code, and how many more there are."""
    seen: dict[str, int] = {}
    for finding in most_severe_first(findings):
        seen[finding.code] = seen.get(finding.code, 0) + 1
        if seen[finding.code] <= _MOST_FINDINGS:
            yield finding


def _verdict(rows: Sequence[Row], causes: Mapping[int, Cause | None], findings: Sequence[Finding]) -> Iterator[str]:
    """The warnings; without one, how much the busiest CPU spends."""
    said = [each.summary for each in most_severe_first(findings) if each.severity == "warning"]
    if said:
        yield from said[:_MOST_FINDINGS]
        if len(said) > _MOST_FINDINGS:
            yield f"{len(said) - _MOST_FINDINGS} more like these"
        return
    most = max(rows, key=lambda row: row.load, default=None)
    if most is None:
        yield "No clock tick was counted on any CPU: what interrupts take is unknown; give a longer -i"
        return
    cause = causes[most.cpu.use.cpu]
    if most.load < _WORTH_NAMING:
        yield f"No CPU is saturated by interrupts: {percent(most.load)} of CPU {most.cpu.use.cpu} at most"
        return
    yield f"No CPU is saturated by interrupts: {_spends(most, cause)} at most"
    if cause is not None and cause.noun == NETWORK and cause.origin == OWN and most.load >= _WORTH_A_VICTIM:
        yield "These softirqs process what threads on that CPU send to this machine: they move with the threads"
