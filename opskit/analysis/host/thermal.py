"""Judge what heat does to the CPUs: only what happens in the window is a warning. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Finding
from opskit.quantities import agreeing, duration, number_ranges, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.finding import Severity
    from opskit.collect.host.thermal import Facts, Slowed

_SLOWED = 0.05  # of the window: shorter ones happen at each burst of work on a laptop
_OFTEN = 2  # times in the window, where their length is not counted
_CLOSE = 3.0  # degrees below the trip point
_COLDEST, _HOTTEST = 40.0, 150.0  # of a plausible trip point: firmware has 0 and 255, too
_CAPPED = 0.8  # of the frequency that the CPU is able to


def judge(facts: Facts) -> tuple[Finding, ...]:
    """The findings about the machine."""
    return (*_hot(facts), *_throttled(facts), *_capped(facts))


def _gained(slowed: Slowed) -> tuple[int, float | None]:
    """How often it was slowed down in the window, and for how many seconds."""
    first, last = slowed.first, slowed.last
    if first is None:
        return 0, None
    times = max(0, last.times - first.times)
    if first.total_ms is None or last.total_ms is None:
        return times, None
    return times, max(0, last.total_ms - first.total_ms) / 1000


def _throttled(facts: Facts) -> Iterator[Finding]:
    now = [each for each in facts.slowed if any(_gained(each))]
    if now:
        yield _in_window(facts, now)
        return
    most = max(facts.slowed, key=lambda each: each.last.times, default=None)
    if most is None or not most.last.times:
        return
    length = "" if most.last.total_ms is None else f", for {duration(most.last.total_ms / 1000)}"
    yield Finding(
        "cpu-thermal-throttled", "note", HOST,
        f"the {most.unit.kind} of CPU {most.unit.cpu} was slowed down for its temperature {plural(most.last.times, 'time')} since boot{length}",
        f"/sys/devices/system/cpu/cpu{most.unit.cpu}/thermal_throttle/{most.unit.kind}_throttle_count: no change now",
    )  # fmt: skip


def _in_window(facts: Facts, now: Sequence[Slowed]) -> Finding:
    worst = max(now, key=lambda each: ((_gained(each)[1] or 0.0), _gained(each)[0]))
    times, seconds = _gained(worst)
    share = None if seconds is None else min(1.0, seconds / max(facts.window_s, 1e-6))
    is_much = times >= _OFTEN if share is None else share >= _SLOWED
    severity: Severity = "warning" if is_much else "note"
    length = (
        f"{plural(times, 'time')} in {duration(facts.window_s)}" if share is None else f"{percent(share)} of the time"
    )
    cpus = number_ranges({each.unit.cpu for each in now})
    return Finding(
        "cpu-thermal-throttled", severity, HOST,
        f"the {worst.unit.kind} of CPU {worst.unit.cpu} is slowed down for its temperature {length}",
        f"thermal_throttle of {agreeing(len(now), 'CPU')} {cpus}: {worst.last.times:,} since boot",
        fix="cool it: fans, dust, airflow, the power limit in the firmware; or move work away",
        next=shell.command("sensors"), share=None if share is None else round(share, 4), window_s=round(facts.window_s, 3),
    )  # fmt: skip


def _hot(facts: Facts) -> Iterator[Finding]:
    """The sensor that is nearest to its limit. A warning where the kernel switches the machine off there."""
    plausible = [
        each for each in facts.temperatures if _COLDEST <= each.limit <= _HOTTEST and 0 < each.celsius <= _HOTTEST
    ]
    close = [each for each in plausible if each.celsius >= each.limit - (_CLOSE if each.is_last else 0.0)]
    worst = max(close, key=lambda each: (each.is_last, each.celsius - each.limit), default=None)
    if worst is None:
        return
    what = "the machine is switched off" if worst.is_last else "the CPU slows down"
    yield Finding(
        "cpu-temperature-critical", "warning" if worst.is_last else "note", HOST,
        f"{worst.name} is at {worst.celsius:.0f} °C; at {worst.limit:.0f} °C {what}",
        f"its temperature beside its {'critical trip point' if worst.is_last else 'limit'}",
        fix="cool it: fans, dust, airflow; or move work away", next=shell.command("sensors"),
        share=round(min(1.0, worst.celsius / worst.limit), 4),
    )  # fmt: skip


def _capped(facts: Facts) -> Iterator[Finding]:
    """CPUs that may not run at their full frequency: somebody set that, or the firmware. A warning where it was lowered just now."""
    capped = [each for each in facts.frequencies if each.allowed_khz < _CAPPED * each.able_khz]
    if not capped:
        return
    is_new = any(each.before_khz is not None and each.before_khz > each.allowed_khz for each in capped)
    worst = min(capped, key=lambda each: each.allowed_khz / each.able_khz)
    cpus = number_ranges(each.cpu for each in capped)
    yield Finding(
        "cpu-frequency-capped", "warning" if is_new else "note", HOST,
        f"{agreeing(len(capped), 'CPU')} {cpus} may run at {worst.allowed_khz / 1e6:.1f} GHz at most, of {worst.able_khz / 1e6:.1f} GHz"
        f"{': that was lowered just now' if is_new else ''}",
        f"/sys/devices/system/cpu/cpufreq/policy{worst.cpu}: scaling_max_freq and cpuinfo_max_freq",
        fix=shell.command("cpupower", "frequency-set", "--max", f"{worst.able_khz}"),
        share=round(worst.allowed_khz / worst.able_khz, 4), window_s=round(facts.window_s, 3) if facts.window_s else None,
    )  # fmt: skip
