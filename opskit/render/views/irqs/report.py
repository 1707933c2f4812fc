"""Interrupts as a report: the verdict, what to type, the CPUs with most interrupts, the heat strip, the busiest interrupts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from opskit.quantities import agreeing, number_ranges, plural
from opskit.records import NamedTuple
from opskit.render.report import Block, Report
from opskit.render.views.irqs.fields import TABLE, TEXT_TABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.irqs.moments import Moment
    from opskit.analysis.irqs.result import Result, Row
    from opskit.collect.irqs.facts import Facts
    from opskit.render.report import About

_FEW_CPUS = 8  # all of so many are shown
_WORTH_A_ROW = 0.01  # of a CPU's time in interrupts and softirqs
_TOP_COMMANDS = 4


class Shown(NamedTuple):
    """How to show it. `text`: columns for awk; `strip`: with the heat strip; `verbose`: every row and block; `top`: -n, rows of CPUs; `watching`: -w on a screen."""

    text: bool = False
    strip: bool = False
    verbose: bool = False
    top: int | None = None
    watching: bool = False


def report(about: About, result: Result, shown: Shown, moments: Sequence[Moment] = ()) -> Report:
    """The machine's CPUs. `moments`: the looks so far, this one as the last."""
    return Report(
        about,
        [*_blocks(result, shown, moments)],
        verdict=[*_verdict(result), *_commands(result, shown)],
        summary=[*_summary(result.facts)],
        footer=[*dict.fromkeys(result.facts.missing)],
        findings=result.findings,
        draw=partial(_draw, about, result, moments),
    )


def by_load(rows: Sequence[Row]) -> list[Row]:
    """The CPUs with most interrupts first: where there is no room for all of them, the busiest ones are those that are shown."""
    return sorted(rows, key=lambda row: (-row.is_saturated, -(row.cpu.drops or 0), -row.load, row.cpu.use.cpu))


def rows_shown(result: Result, shown: Shown) -> Sequence[Row]:
    """For a terminal: those of -n; else all of a small machine, and those with interrupts of a large one."""
    if shown.text or shown.verbose or shown.top == 0:
        rows = result.rows if shown.text else by_load(result.rows)
        return rows[: shown.top or None]
    ordered = by_load(result.rows)
    if shown.top is not None:
        return ordered[: shown.top]
    if len(ordered) <= _FEW_CPUS:
        return ordered
    pinned_to = {cpu for victim in result.victims for cpu in victim.allowed}
    busy = [row for row in ordered if _is_busy(row) or (row.is_saturated and row.cpu.use.cpu in pinned_to)]
    return busy or ordered[:1]


def _is_busy(row: Row) -> bool:
    return row.is_saturated or row.load >= _WORTH_A_ROW or bool(row.cpu.drops)


def _blocks(result: Result, shown: Shown, moments: Sequence[Moment]) -> Iterator[Block[Any]]:
    rows = rows_shown(result, shown)
    if rows:
        yield Block(TEXT_TABLE if shown.text else TABLE, rows, len(result.rows), one_line=True)
    if shown.strip and moments and moments[-1].loads:
        from opskit.render.views.irqs import strip

        yield strip.block(moments)
    if shown.verbose or not shown.text:
        from opskit.render.views.irqs.details import blocks

        yield from blocks(result, verbose=shown.verbose, top=shown.top)


def _verdict(result: Result) -> Iterator[str]:
    """The answer, and what no finding says."""
    said = {finding.summary for finding in result.findings}
    yield from result.verdict[:1]
    yield from (line for line in result.verdict[1:] if line not in said)


def _commands(result: Result, shown: Shown) -> Iterator[str]:
    """What to type, except what is a finding's fix: that is printed with it, unless a watch cuts the findings. Then each warning once."""
    fixes = () if shown.watching else {finding.fix for finding in result.findings}
    most = len(result.commands) if shown.verbose else _TOP_COMMANDS
    unsaid = [command for command in result.commands if command.line not in fixes]
    yield from (f"{command.why}: {command.line}" for command in unsaid[:most])
    if len(unsaid) > most:
        yield f"… {plural(len(unsaid) - most, 'more command')}: -v"
    printed = [command for command in result.commands if command.line in fixes or command in unsaid[:most]]
    warnings: dict[str, str] = {}
    for command in printed:
        if command.warning:  # a fix stands further below
            said = f"{command.why}: {command.warning}" if command.line in fixes else command.warning
            warnings.setdefault(command.warning, said)
    yield from warnings.values()


def _summary(facts: Facts) -> Iterator[str]:
    """What decides where interrupts go, and how exact their time is."""
    said = [*_settings(facts)]
    if said:
        yield "; ".join(said)


def _settings(facts: Facts) -> Iterator[str]:
    if facts.balancer is not None:
        balancer = facts.balancer
        banned = f" without CPU {number_ranges(balancer.banned)}" if balancer.banned else ""
        ignoring = ", ignoring isolcpus" if balancer.ignores_isolation and facts.isolated else ""
        yield f"irqbalance ({balancer.pid}) {'has run once' if balancer.one_shot else 'runs'}{banned}{ignoring}"
    for name, cpus in (("isolated", facts.isolated), ("nohz_full", facts.tickless)):
        if cpus:
            yield f"{name}: {agreeing(len(cpus), 'CPU')} {number_ranges(cpus)}"
    if facts.accounts_irqs is False:
        yield "irq and softirq time is sampled by clock ticks"


def _draw(about: About, result: Result, moments: Sequence[Moment], _format: str) -> str:
    from opskit.render.views.irqs import picture

    return picture.draw(about, result, moments)
