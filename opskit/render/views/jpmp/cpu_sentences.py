"""Sentences about a CPU profile: the hottest methods, how sure they are, how it was sampled and what is missing in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.jpmp.cpu_samples import FEWEST, Share, certain, explained_ms, ranked, share
from opskit.analysis.jpmp.frame_marks import JAVA_KINDS
from opskit.analysis.jpmp.frames import short
from opskit.analysis.jpmp.libraries import is_application, is_jdk
from opskit.quantities import agreeing, duration, listed, percent, plural
from opskit.render.views.jpmp import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.jpmp.cpu_samples import Method
    from opskit.analysis.jpmp.judge import Profile, Weighing
    from opskit.collect.cpu_profile import CpuProfile
    from opskit.collect.jpmp.collect import Facts
    from opskit.proc.unwind.cursor import End

_MOST_POOLS, _RUNNERS_UP, _CALLERS = 3, 2, 3
_LEAST_MS = 0.5
_NEAR = 0.01  # methods whose shares differ by less are one chain of calls
_ENDS: Mapping[End, str] = {
    "dump": "deeper than the copied part of the stack",
    "rule": "code without unwind information",
    "torn": "changed while they were read",
    "deep": "too many frames",
    "none": "no registers",
}
_FOR_BETTER = "--duration and -F give more samples"


def whole_ms(profile: Profile) -> float:
    """The CPU time that all stacks have together."""
    return sum(stack.cpu_ms or 0.0 for stack in profile.stacks)


def of_whole(cpu_ms: float, profile: Profile, taken: CpuProfile) -> Share:
    """A share of the CPU time."""
    return share(cpu_ms, whole_ms(profile), taken.samples)


def share_words(part: Share) -> str:
    """`18.2 % ± 2.1`."""
    return f"{100 * part.part:.1f} % ± {100 * part.plus_minus:.1f}"


def verdict(taken: CpuProfile, profile: Profile) -> Iterator[str]:
    """The hottest methods by their own CPU time, and with their callees."""
    if whole_ms(profile) < _LEAST_MS and not taken.samples:
        yield f"{taken.name or 'the process'} used no CPU time in {duration(taken.elapsed_s)}"
        return
    found = profile.methods or ()
    own, rest = ranked(found, "self")
    if own:
        first = own[0]
        where = _where(first.self_pools)
        line = f"{short(first.name)} uses {share_words(of_whole(first.self_ms, profile, taken))} of the CPU time itself ({first.self_ms:,.0f} ms){where}"
        after = [
            f"{short(each.name)} {share_words(of_whole(each.self_ms, profile, taken))}"
            for each in own[1 : 1 + _RUNNERS_UP]
        ]
        yield f"{line}; then {', '.join(after)}" if after else line
    elif rest:
        yield f"no method has {FEWEST} samples itself: none is named as the hottest; {_FOR_BETTER}"
    callers = [
        f"{short(each.name)} {share_words(of_whole(each.total_ms, profile, taken))}"
        for each in _callers(found, profile)
    ]
    if callers:
        yield f"with callees: {', '.join(callers)}"


def _where(pools: Mapping[str, int]) -> str:
    return f" in {listed([*pools], _MOST_POOLS)}" if pools else ""


def _callers(found: Sequence[Method], profile: Profile) -> list[Method]:
    """Methods with much CPU time in their callees: those of the application, of a chain of calls the nearest to the leaf."""
    above = [
        method for method in ranked(found, "total")[0] if method.total_ms - method.self_ms > _NEAR * whole_ms(profile)
    ]
    java = [method for method in above if method.kind in JAVA_KINDS]
    own = [method for method in java if is_application(method.name)]
    outside = [method for method in java if not is_jdk(method.name)]
    chosen: list[Method] = []
    for method in own or outside or java or above:
        if chosen and chosen[-1].total_ms - method.total_ms <= _NEAR * whole_ms(profile):
            chosen[-1] = method
        else:
            chosen.append(method)
    return chosen[:_CALLERS]


def footer(facts: Facts, taken: CpuProfile, profile: Profile, how: Weighing) -> Iterator[str]:
    """How it was sampled, what the samples leave out, how sure the rows are."""
    yield from _sampled(facts, taken)
    incomplete = {end: count for end, count in taken.ends.items() if end != "root" and count}
    if incomplete and taken.samples:
        number = sum(incomplete.values())
        reasons = ", ".join(
            f"{count:,} {_ENDS[end]}" for end, count in sorted(incomplete.items(), key=lambda each: -each[1])
        )
        yield f"{plural(number, 'stack')} ({percent(number / taken.samples)}) {agreeing(number, 'is', 'are')} incomplete: {reasons}"
    if how.on_cpu:
        yield from _sure(taken, profile)
    yield from _missing(taken)
    if facts.load is not None:
        yield from sentences.queue_line(facts.load)


def _sampled(facts: Facts, taken: CpuProfile) -> Iterator[str]:
    sampler = facts.sampler
    if facts.asprof is not None:
        of = facts.asprof
        sampler = f"async-profiler{f' {of.version}' if of.version else ''} ({of.event}, loaded from {of.library})"  # type: ignore[assignment]
    said = [
        f"sampler {sampler}: {taken.hz:g} Hz for {duration(taken.elapsed_s)}, {plural(taken.samples, 'sample')}, {taken.lost:,} lost",
    ]
    known_ms = explained_ms(taken) if facts.counts_cpu else None
    if known_ms is not None and taken.cpu_ms:
        said.append(
            f"{percent(known_ms / taken.cpu_ms)} of the CPU time explained ({known_ms:,.0f} of {taken.cpu_ms:,.0f} ms)"
        )
    yield "; ".join(said)
    if facts.asprof is not None:
        yield from (*facts.asprof.stays, *facts.asprof.notes)


def _sure(taken: CpuProfile, profile: Profile) -> Iterator[str]:
    """± and the order of the methods; how many rows have too few samples."""
    own, rest = ranked(profile.methods or (), "self")
    if own:
        shares = [of_whole(method.self_ms, profile, taken) for method in own]
        sure = certain(shares)
        order = (
            f"the order of the first {plural(sure, 'method')} is certain"
            if sure > 1
            else "the first method is certain"
            if sure
            else "the first methods may change places"
        )
        yield f"± is a 95 % interval: {order}"
    if rest:
        rest_ms = sum(method.self_ms for method in rest)
        part = percent(rest_ms / whole_ms(profile)) if whole_ms(profile) else "0 %"
        yield f"{plural(len(rest), 'more method')} below {FEWEST} samples: {part} of the CPU time"


def more_stacks(few: int, few_ms: float, all_ms: float) -> list[str]:
    """The stacks that are not ranked."""
    if not few:
        return []
    part = f": {percent(few_ms / all_ms)} of the CPU time" if all_ms else ""
    return [f"{plural(few, 'more stack')} below {FEWEST} samples{part}; -f text has all"]


def _missing(taken: CpuProfile) -> Iterator[str]:
    java = any(frame.kind in JAVA_KINDS for key in taken.stacks for frame in key.frames)
    if java and taken.debug_non_safepoints is not None:
        on = taken.debug_non_safepoints
        yield (
            "-XX:+DebugNonSafepoints is on"
            if on
            else ("-XX:+DebugNonSafepoints is off: the line and the innermost inlined frame are approximate")
        )
    if not taken.kernel_seen and not any("kernel" in each for each in taken.missing):
        yield "kernel frames are missing: only root or CAP_PERFMON may see them; their time is in the frames that called the kernel"
    yield from taken.missing
