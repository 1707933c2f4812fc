"""The answer about a process's limits: headroom, who set what, uses, findings, and the trend of a watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.limits.findings import LimitUse, after_probe, in_watch, limit_findings, limit_uses
from opskit.analysis.limits.fix import fix
from opskit.analysis.limits.headroom import headroom
from opskit.analysis.limits.origin import set_by
from opskit.analysis.slope import slope
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.analysis.finding import Finding
    from opskit.analysis.limits.limit import Headroom
    from opskit.analysis.limits.probe import Probed
    from opskit.collect.limits.facts import ThreadLimitFacts


class HeadroomSample(NamedTuple):
    """One sample: when (seconds since the first), how many more threads could start, and what would stop them.

    `names`: how many of the process's threads have a name of each pattern.
    """

    at_s: float
    threads_left: int | None
    binding: str | None
    in_use: int | None
    names: Mapping[str, int] = {}


class Trend(NamedTuple):
    """`per_min` is negative where headroom shrinks; `zero_in_s` is None where it does not."""

    per_min: float
    zero_in_s: float | None


class LimitsResult(NamedTuple):
    """What is known of one process. `uses`, `samples` and `probed` are None where they were not asked for."""

    facts: ThreadLimitFacts
    headroom: Headroom
    uses: list[LimitUse] | None
    findings: list[Finding]
    samples: list[HeadroomSample] | None = None
    trend: Trend | None = None
    probed: Probed | None = None


def judge(
    facts: ThreadLimitFacts, stack_bytes: int | None = None, earlier: Sequence[HeadroomSample] | None = None
) -> LimitsResult:
    """Judge one look. `stack_bytes` overrides the stack's size; `earlier`: samples of a watch, None without one."""
    found = headroom(facts, stack_bytes)
    limits = (
        limit._replace(
            set_by=set_by(limit, facts) if limit.value is not None else None,
            fix=fix(limit, facts, found.stack) if limit.state == "counts" else None,
        )
        for limit in found.limits
    )
    found = found._replace(limits=tuple(limits))
    uses = limit_uses(facts) if facts.ask.uses else None
    result = LimitsResult(facts, found, uses, limit_findings(facts, found, uses or ()))
    if earlier is None:
        return result
    binding, used = (found.binding.full_name, found.binding.in_use) if found.binding else (None, None)
    samples = [*earlier, HeadroomSample(facts.at_s, found.threads_left, binding, used, facts.thread_names)]
    return result._replace(findings=in_watch(facts, result.findings), samples=samples, trend=trend(samples))


def with_probe(result: LimitsResult, probed: Probed | None) -> LimitsResult:
    """The result with that of a probe; None: it was not made."""
    if probed is None:
        return result
    return result._replace(probed=probed, findings=after_probe(result.facts, result.findings, probed))


def growth(samples: Sequence[HeadroomSample]) -> tuple[str, int, int] | None:
    """The pattern of names that gained most threads since the first sample, how many, and how many threads all gained."""
    first, last = samples[0].names, samples[-1].names
    gained = {name: count - first.get(name, 0) for name, count in last.items()}
    total = sum(last.values()) - sum(first.values())
    most = max(gained, key=gained.__getitem__, default=None)
    return (most, gained[most], total) if most is not None and total > 0 else None


def trend(samples: Sequence[HeadroomSample]) -> Trend | None:
    """The slope of the samples of the limit that binds now; None for fewer than two of them."""
    if not samples or samples[-1].threads_left is None:
        return None
    left, binding = samples[-1].threads_left, samples[-1].binding
    per_s = slope([(each.at_s, each.threads_left or 0) for each in samples if each.binding == binding])
    if per_s is None:
        return None
    return Trend(per_s * 60, 0.0 if left == 0 else left / -per_s if per_s < 0 else None)
