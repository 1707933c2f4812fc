"""How fast a JVM allocates and promotes, and whether its young collections free anything. Pure.

Eden is emptied by each young collection, so that what was allocated between two looks is what the collections in between found in it, and
what is in it now. What was promoted is what the old generation grew by, as long as nothing was removed from it meanwhile. Without any collection
it grows by what is allocated there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding
from opskit.quantities import duration, percent, size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.collect.jvms import Seen
    from opskit.jvm.perfdata.generations import Generations

_FEW = 3  # young collections in a window; fewer are no rate
_LITTLE = 0.25  # of what was allocated, freed
_MOST_SEEN = 0.3  # of the old collections that the promotion rate makes necessary
_SEVERAL = 5  # collections of the old generation; a JVM that starts has some for its Metaspace
_WARM_S = 10.0


class Rates(NamedTuple):
    """Bytes a second that were allocated and promoted, in a window with so many young collections; None: unknown.

    `freed`: the share (0 to 1) of what was allocated in eden that the young collections freed.
    """

    window_s: float
    young: int
    allocation_per_s: float | None
    promotion_per_s: float | None
    freed: float | None


def rates(looks: Sequence[tuple[float, Generations | None]]) -> Rates | None:
    """The rates over several looks (seconds of a clock, counters); None where one lacks the counters, or they ran backwards."""
    pairs = [*zip(looks, looks[1:])]
    steps = [_step(now_s - then_s, now, then) for (then_s, then), (now_s, now) in pairs]
    known = [step for step in steps if step is not None]
    window_s = sum(step.seconds for step in known)
    if not known or len(known) < len(pairs) or window_s <= 0:
        return None
    young = sum(step.young for step in known)
    # Where eden's use is written by collections alone, a step without one says nothing.
    last = looks[-1][1]
    whole = (
        known if last is not None and last.is_eden_current else [*filter(None, [_step(window_s, last, looks[0][1])])]
    )
    direct = _direct_per_s(known, window_s)
    in_eden = _per_s([(step.allocated, step.seconds) for step in whole])
    allocation = None if in_eden is None else in_eden + direct
    promotion = _promotion_per_s(known, direct, window_s)
    kept = (
        None
        if promotion is None
        else promotion * window_s + known[-1].survivors_bytes - known[0].survivors_before_bytes
    )
    freed = 1 - kept / (in_eden * window_s) if in_eden and kept is not None and young else None
    return Rates(window_s, young, allocation, promotion, None if freed is None else min(max(freed, 0.0), 1.0))


class _Step(NamedTuple):
    """Between two looks. `grown`: bytes by which the old generation grew; None: it was collected, too."""

    seconds: float
    young: int
    allocated: float | None
    grown: int | None
    promoted_bytes: int | None  # on average by a young collection, if the collector counts that
    survivors_bytes: int
    survivors_before_bytes: int


def _step(seconds: float, now: Generations | None, then: Generations | None) -> _Step | None:
    if (
        now is None
        or then is None
        or now.collector != then.collector
        or now.young < then.young
        or now.old_pauses < then.old_pauses
    ):
        return None
    grown = now.old_used_bytes - then.old_used_bytes
    return _Step(
        seconds, now.young - then.young, _allocated(now, then), grown if now.old_pauses == then.old_pauses and grown >= 0 else None,
        now.promoted_bytes, now.survivors_bytes, then.survivors_bytes,
    )  # fmt: skip


def _per_s(parts: Sequence[tuple[float | None, float]]) -> float | None:
    """The rate of those parts that are known; None if they are less than half of the time."""
    known_s = sum(seconds for amount, seconds in parts if amount is not None)
    whole_s = sum(seconds for _, seconds in parts)
    return sum(amount or 0.0 for amount, _ in parts) / known_s if known_s > 0 and known_s >= whole_s / 2 else None


def _allocated(now: Generations, then: Generations) -> float | None:
    """Bytes; None where eden's use is not written in between, or a concurrent cycle alone was counted."""
    found, grown = now.young - then.young, now.eden_used_bytes - then.eden_used_bytes
    found = found or now.full - then.full  # a full collection empties eden as well
    if not found:
        return grown if grown >= 0 and now.is_eden_current else None
    # The first one found eden as large as it was then, the others about as large as at both ends.
    mean = (then.eden_bytes + now.eden_bytes) / 2
    full, before = (then.eden_bytes, 0.0) if found == 1 else (mean, then.eden_bytes + (found - 2) * mean)
    return max(0.0, before + _last(now, then, full) + grown)


def _last(now: Generations, then: Generations, full: float) -> float:
    """Bytes that the last collection found in eden: one of G1, or a full one, may have come early, which the TLABs tell."""
    filled = now.eden_filled_bytes
    may_be_early = now.collector == "G1" or now.full > then.full
    # Large objects are not in TLABs: less than was in eden then is not all.
    return filled if may_be_early and filled is not None and filled >= then.eden_used_bytes else full


def _direct_per_s(steps: Sequence[_Step], window_s: float) -> float:
    """Bytes a second that the old generation grew by without any collection: allocated there, as humongous objects are."""
    quiet = [step for step in steps if step.grown is not None and not step.young and step.seconds > 0]
    # The median: a look within a collection finds it counted, and what it promotes in the next step.
    per_s = sorted((step.grown or 0) / step.seconds for step in quiet)
    return per_s[(len(per_s) - 1) // 2] if per_s and sum(step.seconds for step in quiet) >= window_s / 2 else 0.0


def _promotion_per_s(steps: Sequence[_Step], direct_per_s: float, window_s: float) -> float | None:
    """By what the old generation grew in steps with young collections in which it was not collected, for all of them."""
    collecting = [step for step in steps if step.young]
    young = sum(step.young for step in collecting)
    if not young:
        return 0.0 if all(step.grown is not None for step in steps) else None
    undisturbed = [
        (step.grown - direct_per_s * step.seconds, step.young) for step in collecting if step.grown is not None
    ]
    seen = sum(number for _, number in undisturbed)
    if seen >= young / 4:
        return max(0.0, sum(grown for grown, _ in undisturbed)) / seen * young / window_s
    average = steps[-1].promoted_bytes
    return None if average is None else average * young / window_s


def frees_little(seen: Seen, found: Rates | None) -> Iterator[Finding]:
    """Young collections that free almost nothing: a note, as what they keep may be live; a warning if it turns out to be garbage."""
    now, age_s = seen.reading.generations, seen.reading.age_s
    if now is None or found is None or found.freed is None or found.freed > _LITTLE or found.young < _FEW:
        return
    pid, per_s = seen.jvm.pid, found.promotion_per_s or 0.0
    dies = age_s is not None and age_s >= _WARM_S and _is_removed(now, per_s, age_s)
    if dies:
        why = "and die there: dead old objects keep new ones alive (nepotism), the survivor spaces are too small"
    else:
        why = "live objects (a cache that fills, a leak), or garbage that is promoted (nepotism, premature promotion)"
    large = ", or objects of half a region and more" if now.collector == "G1" else ""
    yield Finding(
        "jvm-young-collections-free-little", "warning" if dies else "note", Entity("process", pid, seen.jvm.start_ticks),
        f"{seen.jvm.main}: young collections reclaim {percent(found.freed)} of what it allocates: {size(per_s)}/s are promoted, {why}{large}",
        f"{found.young:,} young collections in {duration(found.window_s)}, {now.old:,} of the old generation since its start, by eden, "
        "survivor and old spaces of its hsperfdata",
        next=shell.command("opskit", "jmap-diff", pid, "--live", "-c", 2),
        share=round(found.freed, 4), window_s=round(found.window_s, 3),
    )  # fmt: skip


def _is_removed(now: Generations, promoted_per_s: float, age_s: float) -> bool:
    """Whether the old generation was collected about as often as this promotion rate makes it necessary: then it is no growth."""
    needed = promoted_per_s * age_s / now.old_max_bytes if now.old_max_bytes else 0.0
    return now.old >= _SEVERAL and needed >= _FEW and now.old >= _MOST_SEEN * needed
