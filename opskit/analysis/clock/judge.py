"""What the facts mean: sentences, findings, commands to type. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.clock import process, sync
from opskit.analysis.clock.offsets import LARGE_S, amount, hours, offset_finding, precise, side, utc, zone_in
from opskit.analysis.clock.result import Result, Skew
from opskit.analysis.finding import HOST, Finding, most_severe_first
from opskit.quantities import duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.clock.result import Sync
    from opskit.collect.clock.answers import Answer
    from opskit.collect.clock.facts import Facts, Source, Step

_SLOW = 0.6  # of a system call: a read from user space takes a tenth to a third of one
_NO_VDSO = frozenset({"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit", "xen", "hyperv_clocksource_msr"})
_RTC_S = 60.0  # an RTC drifts by seconds a day where nothing sets it
_FREQUENCY_PPM = 490.0  # the kernel corrects 500 at most
_FAST_PPM = 1000.0  # crystals are within 200 ppm, and the kernel corrects 500 more
_DAY_S = 86400.0
_FEW_STEPS = 3


def judge(facts: Facts, answers: Sequence[Answer] = ()) -> Result:
    """Judge a look. `answers`: of the machine's own time daemons."""
    state = sync.sync_of(facts, answers)
    skew = skew_of(facts)
    slow = is_slow(facts)
    found = [
        *_steps(facts), *_skew(facts, skew), *sync.findings(facts, state, answers), *_frequency(facts), *_rate(facts),
        *_leap(facts), *_source(facts.source, is_slow=slow), *_rtc(facts, is_right=_is_right(state, skew)), *process.findings(facts),
    ]  # fmt: skip
    if facts.faked_by is not None:
        found = []
    server = facts.server
    is_answered = facts.faked_by is None and (
        server is None or (server.exchange is not None and server.problem is None)
    )
    return Result(
        facts, answers, state, skew, slow, [*_verdict(facts, state, skew)], tuple(most_severe_first(found)), is_answered,
        [*_notes(facts, answers)],
    )  # fmt: skip


def _verdict(facts: Facts, state: Sync, skew: Skew | None) -> Iterator[str]:
    """At most three lines, what was asked for first."""
    if facts.faked_by is not None:
        again = shell.command("env", "-u", "LD_PRELOAD", "opskit", "clock")
        yield f"{facts.faked_by} is loaded into opskit itself, and every time that it reads is false; run {again}."
        return
    if facts.view is not None:
        yield process.sentence(facts.view, facts.zone)
    if facts.steps:
        yield _stepped(facts.steps[-1], facts.steps_total)
    if skew is not None:
        yield _skew_sentence(facts, skew)
    elif facts.server is not None:
        yield f"The offset to {facts.server.name} is unknown: {facts.server.problem or _unusable(facts)}."
    yield sync.sentence(facts, state)


def _unusable(facts: Facts) -> str | None:
    exchange = facts.server.exchange if facts.server else None
    return exchange.reply.why_unusable if exchange else None


def skew_of(facts: Facts) -> Skew | None:
    """The offset to the server; None where it gave no time that proves something."""
    server = facts.server
    if server is None or server.exchange is None or server.problem is not None or facts.faked_by is not None:
        return None
    exchange = server.exchange
    if exchange.reply.why_unusable is not None:
        return None
    reply = exchange.reply
    error_s = exchange.delay_s / 2 + reply.root_delay_s / 2 + reply.root_dispersion_s
    return Skew(exchange.offset_s, error_s, zone_in(exchange.offset_s))


def _skew_sentence(facts: Facts, skew: Skew) -> str:
    name = facts.server.name if facts.server else ""
    within = f"right within {amount(skew.error_s)}"
    if skew.zone_s is not None:
        rest_s = skew.offset_s - skew.zone_s
        return (
            f"The clock is {hours(skew.zone_s)} {side(skew.offset_s)} {name}: matches a timezone offset "
            f"({precise(skew.offset_s)} to add, {precise(rest_s)} beside the hours; {within})."
        )
    if abs(skew.offset_s) <= skew.error_s:
        return f"The clock agrees with {name}: the offset is {precise(skew.offset_s)}, {within}."
    return f"The clock is {amount(skew.offset_s)} {side(skew.offset_s)} {name} ({precise(skew.offset_s)} to add, {within})."


def _skew(facts: Facts, skew: Skew | None) -> Iterator[Finding]:
    if skew is None or facts.server is None:
        if _unusable(facts) is not None and facts.server is not None and facts.server.problem is None:
            why = f"{facts.server.name} gives no time: {_unusable(facts)}"
            yield Finding("clock-server-unsynchronised", "note", HOST, why, _exchange(facts))
        return
    found = offset_finding(
        skew.offset_s, skew.error_s, facts.server.name, _exchange(facts), "", shell.command("date", "-u")
    )
    if found is not None:
        yield found


def _exchange(facts: Facts) -> str:
    exchange = facts.server.exchange if facts.server else None
    if exchange is None:
        return ""
    return (
        f"SNTP, {exchange.address} port {facts.server.port if facts.server else 0}: offset {precise(exchange.offset_s)}, round trip {duration(exchange.delay_s)}, stratum {exchange.reply.stratum}, "
        f"leap indicator {exchange.reply.leap}, best of {plural(exchange.replies, 'reply', 'replies')}"
    )


def _stepped(last: Step, total: int) -> str:
    more = f", {plural(total, 'step')} so far" if total > 1 else ""
    if last.in_leap_second:
        return f"A leap second was {'deleted' if last.by_s > 0 else 'inserted'} at {last.time_utc}{more}."
    return f"The clock was set {'ahead' if last.by_s > 0 else 'back'} by {amount(last.by_s)} at {last.time_utc}{more}."


def _steps(facts: Facts) -> Iterator[Finding]:
    set_ = [step for step in facts.steps if not step.in_leap_second]
    leaps = len(facts.steps) - len(set_)
    if leaps:
        yield Finding(
            "clock-leap-second", "note", HOST, "a leap second was inserted or deleted", "adjtimex: INS or DEL"
        )
    if not set_:
        return
    listed = ", ".join(f"{precise(step.by_s)} at {step.at_s:.1f} s" for step in set_[-_FEW_STEPS:])
    able = [daemon for daemon in facts.daemons if daemon.may_set]
    zone_s = zone_in(set_[-1].by_s)
    like = "" if zone_s is None else ": matches a timezone offset"
    yield Finding(
        "clock-stepped", "warning", HOST, f"the clock was set {plural(facts.steps_total - leaps, 'time')} while it was watched, last by {amount(set_[-1].by_s)}{like}",
        f"CLOCK_REALTIME against CLOCK_BOOTTIME: {'… ' if len(set_) > _FEW_STEPS else ''}{listed}", window_s=facts.watched_s,
        next=shell.command("ps", "-fp", ",".join(str(daemon.pid) for daemon in able)) if able else None,
    )  # fmt: skip


def _frequency(facts: Facts) -> Iterator[Finding]:
    kernel = facts.kernel
    if kernel is not None and kernel.is_synchronised and abs(kernel.rate_ppm) >= _FREQUENCY_PPM and facts.rate is None:
        yield Finding(
            "clock-rate", "note", HOST,
            f"the clock's rate is corrected by {kernel.rate_ppm:+.0f} ppm ({amount(kernel.rate_ppm * 1e-6 * _DAY_S)} a day)",
            "adjtimex: freq and tick; a daemon that corrects an offset does this for a while, a bad oscillator always needs it",
            next=shell.command("opskit", "clock", "-w", "-i", "10s"),
        )  # fmt: skip


def _rate(facts: Facts) -> Iterator[Finding]:
    rate = facts.rate
    if rate is not None and abs(rate.ppm) > _FREQUENCY_PPM:
        fast = "faster" if rate.ppm > 0 else "slower"
        how = "is being slewed" if abs(rate.ppm) > _FAST_PPM else "is corrected by as much as the kernel can"
        yield Finding(
            "clock-rate", "note", HOST, f"the clock {how}: it ran {abs(rate.ppm):,.0f} ppm {fast} than its hardware",
            f"CLOCK_MONOTONIC against CLOCK_MONOTONIC_RAW in {duration(rate.window_s)}", window_s=rate.window_s,
        )  # fmt: skip


def _leap(facts: Facts) -> Iterator[Finding]:
    leap = facts.kernel.leap if facts.kernel else None
    if leap is not None:
        yield Finding(
            "clock-leap-second", "note", HOST, f"a leap second will be {leap} at the end of this UTC day",
            f"adjtimex: status {' '.join(facts.kernel.flags) if facts.kernel else ''}",
        )  # fmt: skip


def is_slow(facts: Facts) -> bool | None:
    """Whether reading the clock is a real system call; None: not measured, or measured under a library that replaces it."""
    cost = facts.source.cost
    return None if cost is None or facts.faked_by is not None else cost.read_ns > _SLOW * cost.syscall_ns


def _source(source: Source, *, is_slow: bool | None) -> Iterator[Finding]:
    if not is_slow or source.cost is None:
        return
    costs = f"a read takes {source.cost.read_ns:,.0f} ns, getppid(2) {source.cost.syscall_ns:,.0f} ns"
    listed = f"{costs}; available: {' '.join(source.available) or 'unknown'}"
    log = shell.command("dmesg", shell.Syntax("|"), "grep", "-i", "-e", "clocksource", "-e", "tsc")
    if source.current in _NO_VDSO:
        better = "tsc" if "tsc" in source.available else None
        place = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        yield Finding(
            "clock-source-slow", "warning", HOST,
            f"clocksource {source.current} is slow: each gettimeofday() is a real system call", listed,
            fix=shell.command("echo", better, shell.Syntax(">"), place) if better else None, next=log,
        )  # fmt: skip
    else:
        yield Finding(
            "clock-source-slow", "note", HOST,
            f"each gettimeofday() is a real system call here, although clocksource {source.current or 'unknown'} needs none "
            "(vdso=0, or a sandbox)", listed, next=log,
        )  # fmt: skip


def _is_right(state: Sync, skew: Skew | None) -> bool:
    """Whether the system clock is known to be right: else the hardware clock may be the better one."""
    off_s = state.offset_s if skew is None else skew.offset_s
    return (state.state == "synchronised" or skew is not None) and abs(off_s or 0.0) <= LARGE_S


def _rtc(facts: Facts, *, is_right: bool) -> Iterator[Finding]:
    rtc = facts.rtc
    if rtc is None or abs(rtc.ahead_s) <= _RTC_S:
        return
    zone_s = zone_in(rtc.ahead_s)
    if zone_s is not None and rtc.keeps == "LOCAL":
        return  # as /etc/adjtime says
    like = f": {_rtc_zone(zone_s, facts)}" if zone_s is not None else ""
    where = "ahead of" if rtc.ahead_s > 0 else "behind"
    is_proven = zone_s is not None and rtc.keeps == "UTC" and facts.container is None
    yield Finding(
        "clock-rtc-offset", "warning" if is_proven else "note", HOST,
        f"the hardware clock (RTC) is {amount(zone_s or rtc.ahead_s)} {where} the system clock{like}; the next boot starts with its time",
        f"/sys/class/rtc/{rtc.name}/since_epoch: {precise(rtc.ahead_s)}; /etc/adjtime: {rtc.keeps or 'does not tell'}",
        fix=shell.command("hwclock", "--systohc", "--utc") if is_right and facts.container is None else None,
    )  # fmt: skip


def _rtc_zone(zone_s: int, facts: Facts) -> str:
    local_s = facts.zone.utc_offset_s
    if local_s is not None and zone_s == round(local_s):
        return f"it keeps local time ({utc(local_s)}), not UTC"
    return "matches a timezone offset"


def _notes(facts: Facts, answers: Sequence[Answer]) -> Iterator[str]:
    """What could not be learnt."""
    if facts.kernel_problem is not None:
        yield facts.kernel_problem
    for answer in answers:
        if answer.problem is not None:
            yield f"{answer.daemon} was not asked: {answer.problem}"
    if facts.view is not None:
        yield from facts.view.problems
    if facts.server is not None and facts.server.problem is not None:
        yield f"{facts.server.name}: {facts.server.problem}"
