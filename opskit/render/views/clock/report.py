"""How the clock is shown: a line for each thing that was read."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from opskit.analysis.clock.offsets import amount, precise, utc
from opskit.analysis.clock.sync import by
from opskit.quantities import duration, plural
from opskit.records import NamedTuple
from opskit.render.fields import TEXT, Field, Kind
from opskit.render.report import Block, Report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.clock.result import Result
    from opskit.collect.clock.answers import Answer
    from opskit.collect.clock.facts import Facts, Server
    from opskit.proc.kernel.adjtimex import KernelClock
    from opskit.render.report import About

_FAILED = 2
_MOST_STEPS = 5


class Line(NamedTuple):
    """A row: what it is, its value in base units for awk and as people read it, and more about it."""

    what: str
    value: object
    shown: str
    more: str = ""


TABLE: Sequence[Field[Line]] = (
    Field("what", TEXT, "what"),
    Field("value", TEXT, "value", attrgetter("shown")),
    Field("more", TEXT, "more"),
)
TEXT_TABLE: Sequence[Field[Line]] = (
    Field("what", TEXT, "what", lambda line: line.what.replace(" ", "-")),
    Field("value", Kind({}), "value"),
    TABLE[2],
)


def report(about: About, result: Result, top: int | None = None, *, text: bool = False) -> Report:
    """The verdict, what was found, and the lines."""
    lines = [*_lines(result)]
    return Report(
        about,
        [Block(TEXT_TABLE if text else TABLE, lines[: top or None], len(lines))],
        result.verdict,
        result.notes,
        findings=result.findings,
        exit_code=None if result.is_answered else _FAILED,
    )


def _lines(result: Result) -> Iterator[Line]:
    facts = result.facts
    if facts.server is not None:
        yield _server(facts.server)
    for step in [*facts.steps][-_MOST_STEPS:]:
        more = f"at {step.time_utc}{', a leap second' if step.in_leap_second else ''}"
        yield Line("step", round(step.by_s, 6), precise(step.by_s), more)
    yield Line("clock", result.sync.state, result.sync.state, result.sync.why)
    for answer in result.answers:
        if answer.problem is None:
            yield _answer(answer)
    answered = {answer.pid for answer in result.answers if answer.problem is None}
    for daemon in [each for each in facts.daemons if each.pid not in answered]:
        can = {
            True: "may set the clock",
            False: "may not set the clock",
            None: "whether it may set the clock is unknown",
        }
        yield Line(
            "daemon", daemon.pid, str(daemon.pid), f"{daemon.name}, {can[daemon.may_set]}, {duration(daemon.age_s)} old"
        )
    if facts.kernel is not None:
        yield from _kernel(facts, facts.kernel)
    cost = facts.source.cost
    read = "" if cost is None else f"{cost.read_ns:,.0f} ns a read, {cost.syscall_ns:,.0f} ns a system call; "
    source = facts.source.current or "unknown"
    yield Line(
        "clocksource", facts.source.current, source, f"{read}available: {' '.join(facts.source.available) or 'unknown'}"
    )
    if facts.rtc is not None:
        keeps = (
            f"keeps {facts.rtc.keeps} by /etc/adjtime"
            if facts.rtc.keeps
            else "keeps UTC unless /etc/adjtime says LOCAL"
        )
        yield Line(
            "rtc",
            round(facts.rtc.ahead_s, 1),
            f"{facts.rtc.ahead_s:+,.1f} s",
            f"{facts.rtc.name} against the system clock; {keeps}",
        )
    yield Line(
        "zone",
        facts.zone.utc_offset_s,
        utc(facts.zone.utc_offset_s),
        f"{facts.zone.name or 'no name'}, of {facts.zone.source}",
    )
    if facts.view is not None and facts.view.zone is not None:
        zone = facts.view.zone
        yield Line(
            "process zone", zone.utc_offset_s, utc(zone.utc_offset_s), f"{zone.name or 'no name'}, of {zone.source}"
        )


def _server(server: Server) -> Line:
    exchange = server.exchange
    if exchange is None or server.problem is not None:
        return Line("server", None, "unknown", f"{server.name}: {server.problem}")
    ago = f", asked {duration(server.ago_s)} ago" if server.ago_s >= 1 else ""
    more = (
        f"to add; {server.name}, stratum {exchange.reply.stratum}, round trip {duration(exchange.delay_s)}, "
        f"best of {plural(exchange.replies, 'reply', 'replies')}{ago}"
    )
    return Line("server", round(exchange.offset_s, 9), precise(exchange.offset_s), more)


def _answer(answer: Answer) -> Line:
    state = "synchronised" if answer.is_synchronised else "not synchronised"
    words = [
        *([f"stratum {answer.stratum}"] if answer.stratum is not None else ()),
        *([f"right within {amount(answer.error_s)}"] if answer.error_s is not None else ()),
        f"by {answer.tool[0]}" if answer.tool else "",
    ]
    more = f"{by(answer)}: {', '.join(filter(None, [state, *words]))}"
    return Line("daemon offset", answer.offset_s, "-" if answer.offset_s is None else precise(answer.offset_s), more)


def _kernel(facts: Facts, kernel: KernelClock) -> Iterator[Line]:
    error = kernel.most_error_s
    how = "the kernel's limit: unknown" if kernel.is_at_limit else "grows by 500 us a second"
    yield Line("max error", error, duration(error), f"{how}; estimated {duration(kernel.estimated_error_s)}")
    rate = facts.rate
    watched = "" if rate is None else f"; measured {rate.ppm:+.2f} ppm in {duration(rate.window_s)}"
    yield Line("rate", round(kernel.rate_ppm, 3), f"{kernel.rate_ppm:+.3f} ppm", f"of the hardware's rate{watched}")
    if kernel.offset_s:
        yield Line("kernel offset", kernel.offset_s, precise(kernel.offset_s), "still to be corrected by the kernel")
    leap = f"one will be {kernel.leap} at the end of the UTC day" if kernel.leap else "none is announced"
    tai = f"TAI - UTC is {kernel.tai_s} s" if kernel.tai_s else "TAI - UTC is not set: CLOCK_TAI shows UTC"
    yield Line("leap second", kernel.leap, kernel.leap or "none", f"{leap}; {tai}")
