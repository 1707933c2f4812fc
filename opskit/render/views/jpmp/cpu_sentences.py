"""Sentences about a CPU profile: the hottest methods, how sure they are, how it was sampled and what is missing in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.jpmp.cpu_samples import FEWEST, Share, certain, explained_ms, ranked, share
from opskit.analysis.jpmp.frame_kinds import kind_of
from opskit.analysis.jpmp.frame_marks import JAVA_KINDS
from opskit.analysis.jpmp.frames import short
from opskit.analysis.jpmp.libraries import is_application, is_jdk, method_name
from opskit.quantities import agreeing, duration, listed, percent, plural, size
from opskit.render.views.jpmp import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.jpmp.cpu_samples import Method
    from opskit.analysis.jpmp.judge import Profile, Weighing
    from opskit.collect.cpu_profile import CpuProfile
    from opskit.collect.jpmp.collect import Facts
    from opskit.proc.unwind.cursor import End

_MOST_POOLS, _CALLERS, _NEARLY = 3, 3, 2
_LEAST_MS = 0.5
_NEAR = 0.01  # methods whose shares differ by less are one chain of calls
_ENDS: Mapping[End, str] = {
    "dump": "deeper than the copy of the stack",
    "rule": "no unwind information",
    "torn": "changed while read",
    "heap": "of virtual threads whose frames in the heap had changed",
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
    """The method that uses most CPU time itself, and those that do with their callees."""
    if whole_ms(profile) < _LEAST_MS and not taken.samples:
        yield f"{taken.name or 'the process'} used no CPU time in {duration(taken.elapsed_s)}"
        return
    found = profile.methods or ()
    own, rest = ranked(found, "self")
    if own:
        shares = [of_whole(method.self_ms, profile, taken) for method in own]
        first = own[0]
        line = f"{short(first.name)} uses {share_words(shares[0])} of the CPU time itself ({first.self_ms:,.0f} ms){_where(first.self_pools)}"
        near = [(method, part) for method, part in zip(own[1:], shares[1:]) if part.high > shares[0].low][:_NEARLY]
        alike = [f"{_simple(method)} {share_words(part)}" for method, part in near]
        yield f"{line}; {', '.join(alike)} may use more" if alike else line
    elif rest:
        yield f"no method has {FEWEST} samples itself, so none is named as the hottest: {_FOR_BETTER}"
    callers = _best_known(found, profile)
    if callers:
        parts = (share_words(of_whole(each.total_ms, profile, taken)) for each in callers)
        named = (f"{_simple(each)} {part}" for each, part in zip(callers, parts))
        yield f"with callees: {', '.join(named)}"


def _best_known(found: Sequence[Method], profile: Profile) -> list[Method]:
    """Callers outside of the JDK if there are any, first those of the application: a few, most CPU time first."""
    outside = [method for method in found if not is_jdk(method.name) and kind_of(method.name) != "generated"]
    callers = callers_of(outside, profile) or callers_of(found, profile)
    first = sorted(callers, key=lambda method: not is_application(method.name))
    return sorted(first[:_CALLERS], key=callers.index)


def _simple(method: Method) -> str:
    return method_name(method.name) if method.kind in JAVA_KINDS else method.name


def _where(pools: Mapping[str, int]) -> str:
    return f" in {listed([*pools], _MOST_POOLS)}" if pools else ""


def callers_of(found: Sequence[Method], profile: Profile) -> list[Method]:
    """Methods that use CPU time in their callees, most first; of a chain of calls the one nearest to the leaf."""
    least_ms = _NEAR * whole_ms(profile)
    above = [method for method in ranked(found, "total")[0] if method.total_ms - method.self_ms > least_ms]
    chosen: list[Method] = []
    if any(method.kind in JAVA_KINDS for method in profile.methods or ()):
        above = [method for method in above if method.kind in JAVA_KINDS]
    for method in above:
        if chosen and chosen[-1].total_ms - method.total_ms <= least_ms:
            chosen[-1] = method
        else:
            chosen.append(method)
    return chosen


def footer(facts: Facts, taken: CpuProfile, profile: Profile, how: Weighing, *, verbose: bool = False) -> Iterator[str]:
    """How it was sampled, what the samples leave out, how sure the rows are."""
    yield from _sampled(facts, taken)
    if verbose and taken.stack_bytes:
        events = "every CPU" if taken.scope == "cpus" else "the threads of the process"
        yield f"perf events of {events}; {size(taken.stack_bytes)} of each stack copied"
    incomplete = _incomplete(taken)
    if incomplete and taken.samples:
        number = sum(incomplete.values())
        reasons = ", ".join(
            f"{count:,} {_ENDS[end]}" for end, count in sorted(incomplete.items(), key=lambda each: -each[1])
        )
        yield f"{plural(number, 'stack')} ({percent(number / taken.samples)}) {agreeing(number, 'is', 'are')} incomplete: {reasons}"
    if how.on_cpu:
        yield from _sure(taken, profile)
    if facts.asprof is None:
        yield from _missing(taken)
    yield from taken.missing
    if facts.load is not None:
        yield from sentences.queue_line(facts.load)


def _sampled(facts: Facts, taken: CpuProfile) -> Iterator[str]:
    sampler: str | None = facts.sampler
    if (of := facts.asprof) is not None:
        sampler = f"async-profiler{f' {of.version}' if of.version else ''} ({of.event}, loaded from {of.library})"
    said = [f"sampler {sampler}: {_amount(facts, taken)}"]
    known_ms = explained_ms(taken) if facts.counts_cpu else None
    if known_ms is not None and taken.cpu_ms:
        said.append(
            f"{percent(known_ms / taken.cpu_ms)} of the CPU time explained ({known_ms:,.0f} of {taken.cpu_ms:,.0f} ms)"
        )
    yield "; ".join(said)
    if of is not None:
        yield from (*of.stays, *of.notes)


def _amount(facts: Facts, taken: CpuProfile) -> str:
    """What was sampled, in its unit."""
    took = duration(taken.elapsed_s)
    unit = facts.counted
    if unit == "bytes":
        return f"{size(taken.samples)} allocated in {took}"
    if unit == "ns":
        return f"{duration(taken.samples / 1e9)} waited for locks in {took}"
    whole = "" if any(_incomplete(taken)) else ", 0 incomplete"
    lost = "" if facts.asprof is not None else f", {taken.lost:,} lost"  # unknown
    return f"{taken.hz:g} Hz for {took}, {plural(taken.samples, 'sample')}{lost}{whole}"


def _incomplete(taken: CpuProfile) -> dict[End, int]:
    return {end: count for end, count in taken.ends.items() if end != "root" and count}


def _sure(taken: CpuProfile, profile: Profile) -> Iterator[str]:
    """How sure the order of the methods is, and what has too few samples to be ranked."""
    own, rest = ranked(profile.methods or (), "self")
    said = []
    if own:
        # The first one that is not ranked may belong above the last ones that are.
        sure = min(certain([of_whole(method.self_ms, profile, taken) for method in (*own, *rest[:1])]), len(own))
        certainly = f"the order of the first {plural(sure, 'method')}" if sure > 1 else "the first method"
        order = f"{certainly} is certain" if sure else "the first methods may change places"
        said.append(f"± is a 95 % interval: {order}")
    few = [stack for stack in profile.selected if 0 < stack.samples < FEWEST]
    unranked = [
        f"{plural(len(rows), f'more {noun}')} ({percent(spent_ms / (whole_ms(profile) or 1))})"
        for rows, noun, spent_ms in (
            (rest, "method", sum(method.self_ms for method in rest)),
            (few, "stack", sum(stack.cpu_ms or 0.0 for stack in few)),
        )
        if rows
    ]
    if unranked:
        said.append(f"below {FEWEST} samples: {', '.join(unranked)}")
    if said:
        yield "; ".join(said)


def _missing(taken: CpuProfile) -> Iterator[str]:
    java = any(frame.kind in JAVA_KINDS for key in taken.stacks for frame in key.frames)
    if java and taken.debug_non_safepoints is not None:
        on = taken.debug_non_safepoints
        about = "lines and innermost inlined frames are approximate"
        yield "DebugNonSafepoints is on" if on else f"DebugNonSafepoints is off: {about}"
    if not taken.kernel_seen and not any("kernel" in each for each in taken.missing):
        yield "kernel frames are missing: only root or CAP_PERFMON may see them; their time is in the frames that called the kernel"
