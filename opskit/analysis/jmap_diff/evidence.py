"""Whether growth between histograms may be garbage, by the collections that ran between them. Pure.

A histogram of a running JVM has garbage in it: all that died since the last collection, and in the old generation since
the last full collection or concurrent cycle. Only `--live`, the collectors whose histograms follow references, and such
old collections show which growth is not garbage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from opskit import shell
from opskit.analysis.jmap_diff.trend import times_s
from opskit.jvm.dumps.class_names import is_application
from opskit.quantities import plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.jmap_diff.trend import Trend
    from opskit.collect.jmap_diff import Facts, Sample
    from opskit.jvm.perfdata.gc_counts import GcCounts

Kind = Literal["reachable", "collected", "young", "none", "unknown"]
LEAST_HISTOGRAMS = 3  # two points are no trend
_LEAST_AFTER_CYCLES = 4  # what a cycle found dead is gone, but what died since is not bounded by the counters
_LEAST_PROMOTED = 4  # growth that young collections moved to the old generation is likely, but not proven
_OF_HEAP, _OF_ITSELF = 0.01, 0.1
_OF_LIVE, _OF_LIVE_IN_JDK = 0.01, 0.25  # strings, arrays and maps of caches grow in every program for some minutes
_FADED = 0.25
_MANY, _ALIKE = 5, 0.5
NO_COLLECTION = "no collection between them"
_STOPPING = frozenset({"G1", "Parallel", "Serial"})  # --live runs a full GC that is counted


class Evidence(NamedTuple):
    """What proves growth. `picked`: indexes of the histograms that may be compared for it; fewer than three prove nothing.

    `reachable`: these have reachable objects only; `collected`: an old collection ran between each two of them. Others
    prove nothing: `young` collections only, `none`, or `unknown`; `why` says so in a sentence.
    """

    kind: Kind
    picked: Sequence[int]
    why: str | None = None

    @property
    def proves(self) -> bool:
        """Whether growth of the picked histograms is not garbage."""
        return self.kind in ("reachable", "collected")


def evidence(facts: Facts, samples: Sequence[Sample]) -> Evidence:
    """What these histograms prove."""
    if facts.jvm is None:
        return _of_files(samples)
    everything = range(len(samples))
    if all(sample.after is not None and sample.after.walks_reachable for sample in samples):
        return Evidence("reachable", everything)
    again = shell.command("opskit", "jmap-diff", facts.jvm.pid, "--live", "-c", 5)
    if facts.live:
        refused = sum(map(_is_refused, samples))
        why = f"the JVM refused the full GC before {plural(refused, 'histogram')} (GC locker): growth may be garbage: {again}"
        return Evidence("unknown", (), why) if refused else Evidence("reachable", everything)
    if len(samples) < 2:
        return Evidence("unknown", ())
    steps = [_between(one, other) for one, other in zip(samples, samples[1:])]
    if any(step is None for step in steps):
        return _by_used_heap(samples, again)
    return _by_counts(samples, [step for step in steps if step is not None], again)


def _of_files(samples: Sequence[Sample]) -> Evidence:
    everything = range(len(samples))
    if all(sample.histogram.moment == "after full gc" for sample in samples):
        return Evidence("reachable", everything)
    why = "unknown whether a collection ran between these files: growth may be garbage, which `jmap -histo:live` leaves out"
    return Evidence("unknown", everything, why)


def _is_refused(sample: Sample) -> bool:
    """Whether the counters show that no full GC ran before a histogram of --live."""
    before, after = sample.before, sample.after
    if before is None or after is None or before.full is None or after.full is None:
        return False
    return after.collector in _STOPPING and after.full <= before.full


def _between(one: Sample, other: Sample) -> GcCounts | None:
    """The collections between two histograms; None: unknown."""
    then, now = one.after, other.before
    if then is None or now is None or then.young is None or now.young is None:
        return None
    return now._replace(
        young=now.young - then.young,
        full=(now.full or 0) - (then.full or 0),
        cycles=(now.cycles or 0) - (then.cycles or 0),
    )


def _by_counts(samples: Sequence[Sample], steps: Sequence[GcCounts], again: str) -> Evidence:
    young, full, cycles = (sum(getattr(step, name) or 0 for step in steps) for name in ("young", "full", "cycles"))
    if not (young or full or cycles):
        return Evidence("none", (), f"{NO_COLLECTION}: growth may be garbage; --live or a longer -i: {again}")
    picked = [0, *(number for number, step in enumerate(steps, 1) if step.full or step.cycles)]
    only_full = all(steps[number - 1].full for number in picked[1:])
    if len(picked) >= (LEAST_HISTOGRAMS if only_full else _LEAST_AFTER_CYCLES):
        return Evidence("collected", picked)
    promoted = range(len(samples)) if len(samples) >= _LEAST_PROMOTED else ()
    if not (full or cycles):
        what = f"only young collections between them ({young:,})"
        return Evidence("young", promoted, f"{what}: growth may be garbage of the old generation; --live: {again}")
    what = f"old collections in {plural(len(picked) - 1, 'step')} of {len(steps)}: too few to tell a leak from garbage"
    return Evidence("young", promoted, f"{what}; --live or a longer -i: {again}")


def _by_used_heap(samples: Sequence[Sample], again: str) -> Evidence:
    """Without counters a heap that shrinks shows a collection, of whatever kind."""
    used = [sample.info and sample.info.used_bytes for sample in samples]
    known = [size for size in used if size is not None]
    if len(known) == len(used) and all(one <= other for one, other in zip(known, known[1:])):
        why = f"{NO_COLLECTION} was seen (GC.heap_info: the used heap never shrank)"
        return Evidence("none", (), f"{why}: growth may be garbage; --live or a longer -i: {again}")
    why = "which collections ran between them is unknown (the JVM shares no counters)"
    return Evidence("unknown", (), f"{why}: growth may be garbage; --live: {again}")


def suspects(
    trend: Sequence[Trend], proof: Evidence, samples: Sequence[Sample], heap_max_bytes: int | None
) -> list[Trend]:
    """The steady trends whose growth is large enough, and proven where the evidence proves anything."""
    if len(proof.picked) < LEAST_HISTOGRAMS:
        return []
    picked = [samples[number] for number in proof.picked]
    return [one for one in trend if one.steady and _is_large(one, proof, picked, heap_max_bytes)]


def _is_large(one: Trend, proof: Evidence, picked: Sequence[Sample], heap_max_bytes: int | None) -> bool:
    track = [one.bytes[number] for number in proof.picked]
    total = picked[-1].histogram.total
    live_bytes = total.bytes if total is not None else 0
    grown = track[-1] - track[0]
    if proof.kind in ("collected", "young"):
        grown -= _young_bytes(picked[-1], live_bytes)
        risen = _old_bytes(picked[-1]) - _old_bytes(picked[0])
        if not all(map(int.__lt__, track, track[1:])) or grown > 2 * risen:
            return False
    if not (_is_even(track, picked) if len(track) < _MANY else still_grows(track)):
        return False
    of_live = _OF_LIVE if is_application(one.name) else _OF_LIVE_IN_JDK
    is_notable = grown > of_live * live_bytes and grown > _OF_ITSELF * track[0]
    return grown > 0 and (is_notable or grown > _OF_HEAP * (heap_max_bytes or live_bytes))


def _is_even(track: Sequence[int], picked: Sequence[Sample]) -> bool:
    """Whether few steps are alike: a program that starts, or serves more requests, grows by leaps."""
    times = times_s([sample.histogram for sample in picked]) or range(len(track))
    paces = [(now - then) / (at - before) for then, now, before, at in zip(track, track[1:], times, times[1:])]
    return min(paces) >= _ALIKE * max(paces)


def still_grows(track: Sequence[int]) -> bool:
    """Whether growth goes on in the second half: that of a cache which warms up fades."""
    middle = len(track) // 2
    return track[-1] - track[middle] >= _FADED * (track[middle] - track[0])


def _old_bytes(sample: Sample) -> int:
    return (sample.before.old_bytes if sample.before else None) or 0


def _young_bytes(sample: Sample, total_bytes: int) -> int:
    """At most how much of a histogram is garbage of the young generation."""
    return max(0, total_bytes - _old_bytes(sample))
