"""The answer about a process's limits: headroom, who set what, uses, findings, and the trend of a watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.limits.findings import limit_findings
from opskit.analysis.limits.fix import fix
from opskit.analysis.limits.headroom import headroom
from opskit.analysis.limits.origin import set_by
from opskit.analysis.limits.trend import HeadroomSample, Trend, trend
from opskit.analysis.limits.use import LimitUse, limit_uses
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.finding import Finding
    from opskit.analysis.limits.limit import Headroom
    from opskit.analysis.limits.probe import Probed
    from opskit.collect.limits.facts import ThreadLimitFacts


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
    """`stack_bytes` overrides the stack's size. `earlier` samples of a watch; None: it is no watch."""
    found = headroom(facts, stack_bytes)
    found = found._replace(
        limits=tuple(
            limit._replace(
                set_by=set_by(limit, facts) if limit.value is not None else None,
                fix=fix(limit, facts, found.stack) if limit.state == "counts" else None,
            )
            for limit in found.limits
        )
    )
    uses = limit_uses(facts) if facts.ask.uses else None
    findings = limit_findings(facts, found, uses or ())
    if earlier is None:
        return LimitsResult(facts, found, uses, findings)
    binding = found.binding
    now = HeadroomSample(
        facts.at_s, found.threads_left, binding.full_name if binding else None, binding.in_use if binding else None
    )
    samples = [*earlier, now]
    return LimitsResult(facts, found, uses, findings, samples, trend(samples))
