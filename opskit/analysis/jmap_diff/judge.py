"""What grew between class histograms, and findings for what keeps growing. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.jmap_diff.comparable import comparable, oddities
from opskit.analysis.jmap_diff.compare import Comparison, Growth, compare, order, visible
from opskit.analysis.jmap_diff.evidence import Evidence, evidence, suspects
from opskit.analysis.jmap_diff.spaces import Forecast, Growing, growing_spaces, heap_forecast
from opskit.jvm.dumps.class_names import is_application
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.finding import Finding
    from opskit.analysis.jmap_diff.names import Choice
    from opskit.analysis.jmap_diff.trend import Trend
    from opskit.collect.jmap_diff import Facts
    from opskit.jvm.dumps.histogram import Histogram


class Result(NamedTuple):
    """The comparison. `used`: the histograms that were compared, with how long each paused the JVM in seconds.

    `rows`: those that are large enough, in no order, and `order` their indexes. `is_partial`: the first or last histogram
    is cut. `printed`: the difference of the Total lines where rows are missing: (instances, bytes). `proof`: whether growth
    may be garbage. `suspects`: the likeliest leaks. `heap`: its forecast, where a suspect fills it or it is full;
    `spaces`: what else fills up.
    """

    facts: Facts
    choice: Choice
    used: list[tuple[Histogram, float | None]]
    found: Comparison
    rows: list[Growth]
    order: list[int]
    trend: list[Trend]
    is_partial: bool
    proof: Evidence
    suspects: list[Trend]
    heap: Forecast | None
    spaces: list[Growing]
    printed: tuple[int, int] | None
    oddities: list[str]
    findings: list[Finding]

    @property
    def leaks(self) -> list[Trend]:
        """The suspects; of the application's classes only, where the others grow with another space."""
        return [one for one in self.suspects if is_application(one.name)] if self.spaces else self.suspects

    def first(self, count: int | None) -> list[Growth]:
        """The first rows in the order; None or 0: all of them."""
        return [self.rows[index] for index in self.order[: count or None]]


def judge(facts: Facts, choice: Choice, sort: str = "bytes", min_bytes: int = 0) -> Result:
    """Compare the last histogram with the first; find what keeps growing in three or more.

    `sort`: bytes, instances, growth or name. `min_bytes`: leave out smaller differences.
    """
    used = comparable([sample.histogram for sample in facts.samples])
    kept = {id(histogram) for histogram in used}
    samples = [sample for sample in facts.samples if id(sample.histogram) in kept]
    found = compare(used, choice)
    rows = visible(found.rows, sort, min_bytes)
    trend = [one for one in found.trend if abs(one.bytes[-1] - one.bytes[0]) >= min_bytes]
    is_partial = any(histogram.cut for histogram in (used[0], used[-1]))
    proof = evidence(facts, samples)
    leaking = suspects(trend, proof, samples, facts.jvm and facts.jvm.heap_max_bytes)
    heap = heap_forecast(facts, proof, samples, found.times_s, leaking)
    spaces = growing_spaces(facts, proof, samples, found.times_s)
    result = Result(
        facts,
        choice,
        [(sample.histogram, sample.pause_s) for sample in samples],
        found,
        rows,
        order(rows, sort),
        trend,
        is_partial,
        proof,
        leaking,
        heap,
        spaces,
        _by_total_lines(used) if is_partial and not choice.is_partial else None,
        oddities(used, found.came),
        [],
    )
    if not (leaking or heap or spaces):
        return result
    from opskit.analysis.jmap_diff.findings import findings  # a millisecond of start-up

    return result._replace(findings=findings(result))


def _by_total_lines(used: Sequence[Histogram]) -> tuple[int, int] | None:
    first, last = used[0].total, used[-1].total
    return None if first is None or last is None else (last.instances - first.instances, last.bytes - first.bytes)
