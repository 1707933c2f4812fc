"""What the facts mean: sentences, findings, commands to type. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opskit.analysis.dentry import drop as drops
from opskit.analysis.dentry import lookups as lookups_
from opskit.analysis.dentry.findings import findings, ways
from opskit.analysis.dentry.growth import Sample, cache_growth_per_min, growth_per_min, sample
from opskit.analysis.dentry.usage import Usage, measure
from opskit.analysis.dentry.verdict import little_to_free, verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.analysis.dentry.drop import Drop, Dropped
    from opskit.analysis.dentry.lookups import Lookups
    from opskit.analysis.finding import Finding
    from opskit.collect.dentry import Facts


class Result(NamedTuple):
    """The answer. `ways`: commands that help. `samples`, `growth`, `lookups` and `drop` only where they were asked for.

    `growth` per minute by number, `cache_growth` by slab; `negative_growth`: of negative dentries during the trace.
    """

    usage: Usage
    verdict: Sequence[str]
    findings: Sequence[Finding] = ()
    ways: Sequence[str] = ()
    notes: Sequence[str] = ()
    samples: tuple[Sample, ...] | None = None
    growth: Mapping[str, float | None] | None = None
    cache_growth: Mapping[str, float | None] | None = None
    lookups: Lookups | None = None
    negative_growth: int | None = None
    drop: Drop | None = None


def judge(facts: Facts, max_percent: float | None = None, earlier: tuple[Sample, ...] | None = None) -> Result:
    """Judge one look. `max_percent`: --check; `earlier`: the samples of a watch so far, None without a watch."""
    usage = measure(facts)
    found = findings(usage, max_percent)
    typed = tuple(command for one in found for command in (one.fix, one.next) if command)
    helpful = [way for way in ways(usage) if not way.endswith(typed)]
    result = Result(usage, verdict(usage), found, helpful, facts.missing)
    if earlier is None:
        return result
    samples = (*earlier, sample(facts.at_s, usage))
    return result._replace(samples=samples, growth=growth_per_min(samples), cache_growth=cache_growth_per_min(samples))


def judge_lookups(before: Facts, after: Facts, seen: Lookups, max_percent: float | None = None) -> Result:
    """Judge a trace of failed lookups, with the looks before and after it."""
    result = judge(after, max_percent)
    counts = [facts.state and facts.state.negative for facts in (before, after)]
    grown = None if counts[0] is None or counts[1] is None else counts[1] - counts[0]
    estimated = (
        f"{seen.counted:,} of {seen.total:,} failed lookups were read, the others are shared out in proportion: "
        "counts are estimates, the total is the kernel's own"
    )
    return result._replace(
        verdict=[*lookups_.verdict(seen, grown), *result.verdict],
        notes=result.notes if seen.complete else [*result.notes, estimated],
        lookups=seen,
        negative_growth=grown,
    )


def judge_drop(done: Dropped, before: Facts, after: Facts, max_percent: float | None = None) -> Result:
    """Judge a drop by the looks before and after it."""
    usage = measure(after)
    drop = drops.compare(done, measure(before), usage)
    hint = None if done.level == "pagecache" else little_to_free(measure(before))
    return Result(
        usage,
        [drops.verdict(drop), *([hint] if hint else [])],
        [] if max_percent is None else findings(usage, max_percent),
        notes=[*drops.notes(drop), *(after.missing if any(row.by is None for row in drop.changes) else ())],
        drop=drop,
    )
