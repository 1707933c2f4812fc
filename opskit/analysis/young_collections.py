"""How fast a JVM allocates and promotes, and whether its young collections free anything. Pure.

Eden is emptied by each young collection, so that what was allocated between two looks is what the collections in between found in it, and
what is in it now. What was promoted is what the old generation grew by, as long as nothing was removed from it meanwhile.
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
_WARM_S = 10.0


class Rates(NamedTuple):
    """Bytes a second that were allocated and promoted, in a window with so many young collections; None: unknown.

    `freed`: the share (0 to 1) of the allocated bytes that the young collections freed.
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
    allocation = _per_s([(step.allocated, step.seconds) for step in whole])
    promotion = _promotion_per_s(known, young, window_s)
    kept = (
        None
        if promotion is None
        else promotion * window_s + known[-1].survivors_bytes - known[0].survivors_before_bytes
    )
    freed = 1 - kept / (allocation * window_s) if allocation and kept is not None and young else None
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
    if now is None or then is None or now.collector != then.collector or now.young < then.young or now.old < then.old:
        return None
    grown = now.old_used_bytes - then.old_used_bytes
    return _Step(
        seconds, now.young - then.young, _allocated(now, then), grown if now.old == then.old and grown >= 0 else None,
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
    last = now.eden_bytes if now.eden_filled_bytes is None else now.eden_filled_bytes
    if found == 1:
        return max(0.0, last + grown)
    # The first one found eden as large as it was then; those in between as large as at both ends.
    return max(0.0, then.eden_bytes + (found - 2) * (then.eden_bytes + now.eden_bytes) / 2 + last + grown)


def _promotion_per_s(steps: Sequence[_Step], young: int, window_s: float) -> float | None:
    """By what the old generation grew in steps in which it was not collected, for all young collections."""
    undisturbed = [(step.grown, step.young) for step in steps if step.grown is not None]
    grown, seen = sum(grown for grown, _ in undisturbed), sum(number for _, number in undisturbed)
    if len(undisturbed) == len(steps):
        return grown / window_s
    if seen and seen >= young / 4:
        return grown / seen * young / window_s
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
        large = ", or objects of half a region and more" if now.collector == "G1" else ""
        why = (
            f"and die there: dead old objects keep new ones alive (nepotism), the survivor spaces are too small{large}"
        )
    else:
        why = "live objects (a cache that fills, a leak), or garbage that is promoted (nepotism, premature promotion)"
    yield Finding(
        "jvm-young-collections-free-little", "warning" if dies else "note", Entity("process", pid, seen.jvm.start_ticks),
        f"{seen.jvm.main}: young collections reclaim {percent(found.freed)} of what it allocates: {size(per_s)}/s are promoted, {why}",
        f"{found.young:,} young collections in {duration(found.window_s)}, {now.old:,} of the old generation since its start, by eden, "
        "survivor and old spaces of its hsperfdata",
        next=shell.command("opskit", "jmap-diff", pid, "--live", "-c", 2),
        share=round(found.freed, 4), window_s=round(found.window_s, 3),
    )  # fmt: skip


def _is_removed(now: Generations, promoted_per_s: float, age_s: float) -> bool:
    """Whether the old generation was collected about as often as this promotion rate makes it necessary: then it is no growth."""
    needed = promoted_per_s * age_s / now.old_max_bytes if now.old_max_bytes else 0.0
    return now.old >= _FEW and needed >= _FEW and now.old >= _MOST_SEEN * needed
